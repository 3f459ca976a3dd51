"""What can be said about a result: how robust it is, and what stood in the way."""
