"""Fits: the model that users call, progress, checkpoints, warnings, and models loaded from files."""
