"""Distributions of categories, counts and numbers that are seen in part, and the links to their predictors."""
