"""What a ranking is worth: metrics, frequency bands, tables, the HTML report."""
