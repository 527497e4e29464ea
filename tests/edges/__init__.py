"""Claims about data at the edge: extreme scales, degenerate rows, odd containers and bad input."""
