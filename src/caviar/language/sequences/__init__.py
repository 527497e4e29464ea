"""Hidden sequences: chains of states, linear Gaussian chains and mixtures of chains."""
