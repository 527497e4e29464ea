"""Numbers: special functions, small matrices, sums along a tree, BLAS, random generators, values computed once."""
