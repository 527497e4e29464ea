"""Parameter expansion: moves along which the data say nothing, to where the priors like them best."""
