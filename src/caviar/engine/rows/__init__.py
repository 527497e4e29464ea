"""One pass over the rows: a map over blocks, and a sum."""
