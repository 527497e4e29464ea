"""How much too certain q is where entries are missing, beside a Gibbs sampler, and what missing entries cost.

    python benchmarks/missing_values.py [--sweeps 20000]

Three tables, printed one after the other. The first has one component, so that with complete rows q is the exact
posterior; the second has two components far apart. In both, standard deviations of each mean under q are divided by
those of a Gibbs sampler that draws labels, missing entries, means and precisions in turn from the same model. The last
table has the seconds of a pass over the rows, with missing entries and without.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
from scipy.stats import wishart

from caviar.models import normal_wishart_mixture

D = 3
PRIOR = {"mean_precision": 0.1, "df": D + 2.0, "inverse_scale": np.eye(D)}


@dataclass(frozen=True)
class Comparison:
    """Standard deviations of the means (K, D) under q and of the sampler, and the means that each expects.

    Components are in the order of their first column.
    """

    under_q: np.ndarray
    sampled: np.ndarray
    mean_under_q: np.ndarray
    mean_sampled: np.ndarray

    @property
    def ratio(self) -> np.ndarray:
        """The standard deviation under q over that of the sampler: below 1 where q is too certain."""
        return self.under_q / self.sampled


def table(
    rng: np.random.Generator, n_rows: int, n_components: int, share: float, correlation: float
) -> np.ndarray:
    """Return rows of components 12 apart, of correlated columns, with a share of their entries missing."""
    covariance = (1 - correlation) * np.eye(D) + correlation
    z = np.arange(n_rows) % n_components
    x = rng.multivariate_normal(np.zeros(D), covariance, n_rows) + 12.0 * z[:, None]
    gone = rng.random(x.shape) < share
    gone[np.arange(n_rows), rng.integers(0, D, n_rows)] = False
    return np.where(gone, np.nan, x)


def gibbs(x: np.ndarray, n_components: int, n_sweeps: int, rng: np.random.Generator) -> np.ndarray:
    """Return draws of the means, shape (sweeps, K, D), after a tenth of the sweeps were dropped."""
    patterns, group = np.unique(np.isnan(x), axis=0, return_inverse=True)
    groups = [(gone, np.flatnonzero(group.ravel() == i)) for i, gone in enumerate(patterns)]
    filled = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
    # the first column of each row that has one tells the components apart
    z = np.argsort(np.argsort(np.nanmean(x, axis=1))) * n_components // len(x)
    draws = np.empty((n_sweeps, n_components, D))
    for sweep in range(n_sweeps):
        means, precisions = _draw_components(filled, z, n_components, rng)
        weights = rng.dirichlet(1.0 + np.bincount(z, minlength=n_components))
        z = _draw_labels(x, groups, weights, means, precisions, rng)
        _draw_missing(filled, groups, z, means, precisions, rng)
        draws[sweep] = means
    return draws[n_sweeps // 10 :]


def _draw_components(
    x: np.ndarray, z: np.ndarray, n_components: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and precisions given complete rows and their labels."""
    means, precisions = np.empty((n_components, D)), np.empty((n_components, D, D))
    for k in range(n_components):
        rows = x[z == k]
        count, kappa = len(rows), PRIOR["mean_precision"] + len(rows)
        centre = rows.mean(axis=0) if count else np.zeros(D)
        scatter = (rows - centre).T @ (rows - centre)
        shift = PRIOR["mean_precision"] * count / kappa * np.outer(centre, centre)
        scale = np.linalg.inv(PRIOR["inverse_scale"] + scatter + shift)
        precisions[k] = wishart.rvs(PRIOR["df"] + count, scale, random_state=rng)
        root = np.linalg.cholesky(np.linalg.inv(kappa * precisions[k]))
        means[k] = count / kappa * centre + root @ rng.standard_normal(D)
    return means, precisions


def _draw_labels(x, groups, weights, means, precisions, rng) -> np.ndarray:
    """Return labels given the entries that were observed, the missing ones integrated out."""
    logits = np.tile(np.log(weights), (len(x), 1))
    for gone, rows in groups:
        seen = ~gone
        for k, covariance in enumerate(np.linalg.inv(precisions)):
            root = np.linalg.cholesky(covariance[np.ix_(seen, seen)])
            residual = np.linalg.solve(root, (x[np.ix_(rows, seen)] - means[k, seen]).T)
            logits[rows, k] -= 0.5 * np.sum(residual**2, axis=0) + np.log(np.diag(root)).sum()
    return np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)


def _draw_missing(filled, groups, z, means, precisions, rng) -> None:
    """Draw missing entries given the labels and the entries observed, in place."""
    for gone, rows in groups:
        for k in range(len(means)) if gone.any() else ():
            own, seen = rows[z[rows] == k], ~gone
            covariance = np.linalg.inv(precisions[k][np.ix_(gone, gone)])
            slope = covariance @ precisions[k][np.ix_(gone, seen)]
            centre = means[k, gone] - (filled[np.ix_(own, seen)] - means[k, seen]) @ slope.T
            noise = rng.standard_normal(centre.shape) @ np.linalg.cholesky(covariance).T
            filled[np.ix_(own, gone)] = centre + noise


def compare(x: np.ndarray, n_components: int, n_sweeps: int, seed: int = 0) -> Comparison:
    """Return the comparison of q with a sampler on one table."""
    model = normal_wishart_mixture(D, n_components, **PRIOR)
    theta = model.fit({"x": x}, seed=seed, tol=1e-10)["theta"]
    # the mean is Student-t with df + 1 - D degrees of freedom
    variance = (
        np.diagonal(theta.inverse_scale, axis1=-2, axis2=-1)
        / (theta.mean_precision * (theta.df - D - 1))[:, None]
    )
    order = np.argsort(theta.mean[:, 0])
    draws = gibbs(x, n_components, n_sweeps, np.random.default_rng(seed))
    by_size = np.argsort(draws.mean(axis=0)[:, 0])
    return Comparison(
        np.sqrt(variance[order]),
        draws.std(axis=0)[by_size],
        theta.mean[order],
        draws.mean(axis=0)[by_size],
    )


def seconds_of_a_pass(x: np.ndarray, n_components: int, n_passes: int = 20) -> float:
    """Return the seconds that a pass and the updates take, from fits of two lengths."""
    model, times = normal_wishart_mixture(x.shape[1], n_components), []
    for length in (1, 1 + n_passes):
        best = np.inf
        for _ in range(3):
            start = time.perf_counter()
            model.fit({"x": x}, seed=0, max_iter=length, tol=0)
            best = min(best, time.perf_counter() - start)
        times.append(best)
    return (times[1] - times[0]) / n_passes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sweeps", type=int, default=20_000)
    sweeps = parser.parse_args().sweeps
    for n_components, n_rows in ((1, 50), (2, 100)):
        print(f"{n_components} component(s), {n_rows} rows of {D} columns: sd of the means under q / Gibbs")
        print("missing  correlation   least  median    most")
        for share, correlation in ((0.0, 0.7), (0.1, 0.7), (0.2, 0.7), (0.4, 0.0), (0.4, 0.7), (0.4, 0.95)):
            x = table(np.random.default_rng(1), n_rows, n_components, share, correlation)
            ratio = compare(x, n_components, sweeps).ratio
            print(
                f"{share:7.0%}  {correlation:11.2f}  {ratio.min():6.2f}  {np.median(ratio):6.2f}  {ratio.max():6.2f}"
            )
        print()
    print("rows     D  K  complete   10% missing  ratio")
    for n_rows, size, k in ((20_000, 8, 8), (200_000, 8, 8), (20_000, 16, 8)):
        rng = np.random.default_rng(0)
        x = rng.normal(0, 3, (k, size))[rng.integers(0, k, n_rows)] + rng.normal(size=(n_rows, size))
        complete = seconds_of_a_pass(x, k)
        x[rng.random(x.shape) < 0.1] = np.nan
        partial = seconds_of_a_pass(x, k)
        times = f"{1e3 * complete:6.1f} ms  {1e3 * partial:8.1f} ms  {partial / complete:5.1f}"
        print(f"{n_rows:7,d} {size:2d} {k:2d}  {times}")


if __name__ == "__main__":
    main()
