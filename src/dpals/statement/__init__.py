"""What was promised, to whom and at what cost, for people and for programs."""
