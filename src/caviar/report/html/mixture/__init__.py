"""The page of a mixture of Gaussians."""
