"""Boosted trees, and the surrogate of the predictor that is made of them."""
