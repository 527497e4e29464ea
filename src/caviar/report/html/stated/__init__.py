"""The page of the posterior of a stated model, of topics, and of mixtures of mixed columns."""
