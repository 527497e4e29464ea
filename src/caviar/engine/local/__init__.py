"""The factors of the hidden variables of a row."""
