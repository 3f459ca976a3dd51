"""Relations between columns that hold in the training data, such as ``total = months * price``."""
