"""The foundation: the data types that rooms exchange (corpora, rankings), and their storage."""
