"""The evidence of a model with its error: the ELBO corrected to second order, and importance sampling."""
