"""A package, so that pytest closes the cluster after the last of its tests, and not after the last of all."""
