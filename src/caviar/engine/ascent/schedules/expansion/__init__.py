"""Parameter expansion: moves along directions that the data do not determine, to the optimum of the priors."""
