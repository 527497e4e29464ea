"""Distributions of hidden sequences: Markov chains, linear Gaussian chains, and how they respond to changes."""
