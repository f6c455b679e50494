"""The use cases of the board. Each door calls these, and only these."""
