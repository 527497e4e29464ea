"""Prediction of variables that are missing in new rows: mean and standard deviation under q, in closed form."""
