"""One file a step; the number says the order."""
