"""Which candidates have an effect: inclusion probabilities and credible sets of vectors with zeros."""
