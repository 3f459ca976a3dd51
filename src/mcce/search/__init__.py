"""The searches: how draws become counterfactuals, the paper's way and beyond it."""
