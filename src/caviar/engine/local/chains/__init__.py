"""The factors of chains: one factor over the rows of each sequence."""
