"""Rows that need not be in memory, and passes over them where they are."""
