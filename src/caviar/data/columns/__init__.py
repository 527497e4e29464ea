"""Columns of tables: numbers in any notation, digits that would be lost, labels, and numbers of rows."""
