"""Random models of every kind that the language states, and what must hold of each."""
