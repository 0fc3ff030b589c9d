"""Several rankings to one: candidates, trees, rare labels, calibration, thresholds."""
