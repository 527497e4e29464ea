"""Points at which bounds and expansions of densities are taken, and approximations of distributions by simpler ones."""
