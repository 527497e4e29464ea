"""Solutions of linear response: what it adds to the factors, from its matrix or by steps."""
