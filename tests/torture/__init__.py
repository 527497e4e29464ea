"""Data sets that break mixtures of Gaussians, and what every fit to them must keep."""
