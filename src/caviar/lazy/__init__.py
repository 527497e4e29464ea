"""Rows that need not be in memory, and looks at all of them where they lie."""
