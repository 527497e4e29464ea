"""Which standard deviations and intervals a posterior shows: those that are known, and those that will be computed."""
