"""The factors of what is hidden in a row."""
