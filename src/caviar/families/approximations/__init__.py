"""Points and moments at which bounds and expansions stand, and distributions that stand for others."""
