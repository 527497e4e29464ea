"""The number of components of a mixture found by splits, merges and deletions that raise the ELBO."""
