"""Words to rankings: tf-idf, the SVM, keywords and descriptions, name matching."""
