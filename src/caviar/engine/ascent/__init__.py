"""The loop: a problem, its state, the ELBO, and what ends a fit."""
