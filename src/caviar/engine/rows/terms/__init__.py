"""Row terms: what rows add to the natural parameters of their local factors, and what these add to the sums."""
