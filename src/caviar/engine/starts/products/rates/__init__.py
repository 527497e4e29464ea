"""Rates: Gammas whose products add up to the rates of counts, as factors of a table of these."""
