"""Mixture densities: against quadrature, SciPy and their own draws."""
