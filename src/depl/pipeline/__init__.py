"""Make a run: stages, each with what it needs."""
