"""The service: suggestions, explanations and label editing over HTTP, and a page for people."""
