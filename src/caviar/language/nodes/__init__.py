"""The parts of a statement: plates, constants, indexing and sums, and the slots of distributions that hold them."""
