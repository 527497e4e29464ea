"""Textbook implementations to compare with: literal loops, no code shared with the library.

They are slow on purpose. Each module states one model with its formulas; nothing here may import more of
the library than its array types.
"""
