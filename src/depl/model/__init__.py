"""Use a run: suggestions, explanations, similar labels."""
