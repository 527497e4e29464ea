"""Numbers: special functions, small matrices, sums along a tree, BLAS, generators, shares, values computed once."""
