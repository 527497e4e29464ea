"""Passes over documents whose distributions are integrated out, or points."""
