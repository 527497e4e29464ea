"""Priors that the arguments of estimators ask for, and what users know."""
