"""Documents as rows of data."""
