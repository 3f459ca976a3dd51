"""What looks real among accepted rows, calibrated."""
