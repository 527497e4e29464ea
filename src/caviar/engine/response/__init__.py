"""Linear response: how the expected statistics of a fit change together, and the covariances that follow."""
