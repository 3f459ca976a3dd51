"""What real rows with the desired decision look like, calibrated on held-out rows."""
