"""Edits of a run's labels without retraining."""
