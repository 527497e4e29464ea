"""Factors whose log density has any functions of a number, or of the pieces of a stick: integrals by tables."""
