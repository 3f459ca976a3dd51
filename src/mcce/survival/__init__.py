"""Answers that stay valid when the predictor is trained anew."""
