"""Factors that several globals share: each is one variable of the engine."""
