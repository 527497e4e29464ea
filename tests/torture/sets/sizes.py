"""Few rows, many columns, many components."""

from torture.case import Case, blobs, noise

CASES = [
    Case("1 row", "a single row in two columns", lambda rng: noise(rng, 1), 1),
    Case("1 row, 3 components", "fewer rows than components by two", lambda rng: noise(rng, 1),
         refused_by_em="at least as many rows"),
    Case("1 row, 1 column", "a single number", lambda rng: noise(rng, 1, 1), 1),
    Case("1 row, 20 columns", "a single row, and many columns", lambda rng: noise(rng, 1, 20), 1),
    Case("2 rows", "two rows, two components", lambda rng: noise(rng, 2), 2),
    Case("2 rows, 1 component", "two rows determine a line", lambda rng: noise(rng, 2), 1),
    Case("2 rows, 1 column", "two numbers", lambda rng: noise(rng, 2, 1), 2),
    Case("2 rows, 10 columns", "two rows in ten columns", lambda rng: noise(rng, 2, 10), 2),
    Case("3 rows, 3 columns", "one row fewer than a covariance needs", lambda rng: noise(rng, 3, 3), 1),
    Case("K = N", "a component for each row", lambda rng: noise(rng, 8), 8),
    Case("K = N - 1", "one row more than components", lambda rng: noise(rng, 9), 8),
    Case("K > N", "more components than rows", lambda rng: noise(rng, 5), 9, refused_by_em="at least as many rows"),
    Case("K = 10 N", "ten components for each row", lambda rng: noise(rng, 4), 40,
         refused_by_em="at least as many rows"),
    Case("K = 40", "far more components than clusters", lambda rng: blobs(rng, 60), 40),
    Case("K = 1", "one component, three clusters", blobs, 1),
    Case("K = 2, N = 1000", "many rows", lambda rng: blobs(rng, 1000), 2),
    Case("N = D", "as many rows as columns", lambda rng: noise(rng, 10, 10), 2),
    Case("N = D + 1", "just enough rows for one covariance", lambda rng: noise(rng, 11, 10), 1),
    Case("N = D - 1", "one row too few for one covariance", lambda rng: noise(rng, 9, 10), 1),
    Case("D = 20, N = 10", "more columns than rows", lambda rng: noise(rng, 10, 20), 2),
    Case("D = 100, N = 20", "five columns for each row", lambda rng: noise(rng, 20, 100), 2),
    Case("D = 50, N = 60", "columns nearly as many as rows", lambda rng: blobs(rng, 60, 50), 3),
    Case("D = 1", "a single column", lambda rng: blobs(rng, 40, 1)),
    Case("D = 1, K = 12", "a single column, many components", lambda rng: blobs(rng, 40, 1), 12),
    Case("pure noise", "no cluster at all", noise, 5),
    Case("well apart", "clusters 1000 widths apart", lambda rng: blobs(rng, apart=1e3)),
    Case("a cluster of one row", "39 rows of one cluster, one of another",
         lambda rng: noise(rng) + 100.0 * (rng.permutation(40) == 0)[:, None], 2),
    Case("a cluster of 1 in 500", "a cluster that is rare", lambda rng: noise(rng, 500)
         + 20.0 * (rng.permutation(500) == 0)[:, None], 2),
]
