"""The search for settings: trials on a slice of the training documents, with Optuna."""
