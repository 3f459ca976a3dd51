"""Step 3 of the paper: validate, filter and rank candidates; choose answers that differ."""
