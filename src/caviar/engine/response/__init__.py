"""Linear response: how all expected statistics of a fit change together, and what follows from it."""
