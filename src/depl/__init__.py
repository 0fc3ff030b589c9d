"""Tag documents with labels from very large, long-tailed label sets; get the rare ones right."""
