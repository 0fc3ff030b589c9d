"""Using a run: suggestions, explanations, similar labels."""
