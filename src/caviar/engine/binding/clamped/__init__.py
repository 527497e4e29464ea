"""Globals whose values are known, as a whole or at some repetitions."""
