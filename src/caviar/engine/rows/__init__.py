"""One look at the rows: a map over blocks, and one sum."""
