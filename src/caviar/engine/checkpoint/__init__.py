"""The state of a fit as plain values, restored to the same bits."""
