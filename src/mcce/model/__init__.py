"""Step 1: models of the mutable features given the immutable ones and the decision."""
