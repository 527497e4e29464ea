"""What is missing: values, entries of vectors, steps of chains."""
