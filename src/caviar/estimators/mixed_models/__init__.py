"""Mixed models: a formula and a table become a stated model with one Gaussian factor for all coefficients."""
