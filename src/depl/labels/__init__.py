"""Edits of a run's labels without a full training."""
