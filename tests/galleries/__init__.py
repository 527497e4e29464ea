"""Models that other systems show off, each with an oracle of its own."""
