"""Settings, recipes and the run folder."""
