"""scikit-learn's contract, densities that integrate to one, and what the estimators promise besides."""
