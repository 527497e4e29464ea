"""A state of a fit as plain values, and back to the same bits."""
