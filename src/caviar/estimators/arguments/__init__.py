"""Arguments of estimators: declared once, checked, passed on, and in docstrings."""
