"""What looks real among accepted rows, calibrated, and boosted trees that imitate the predictor."""
