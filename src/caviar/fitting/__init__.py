"""Model: what a user calls. A fit with its progress, checkpoints and warnings, and models loaded from files."""
