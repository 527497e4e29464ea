"""A program that makes one fit with a checkpoint, and writes down what it came to: what the tests of signals kill.

Arguments: the checkpoint ("" for none), the file for the result, "kill" or "terminate"; or "search", for a fit that
searches for its number of components and is killed.
"""

import sys
from pathlib import Path

import numpy as np

import caviar as cv


def main(checkpoint: str, result: str, kind: str) -> None:
    """Fit, and write down every number of the end."""
    rng = np.random.default_rng(0)
    if kind == "search":
        rows = rng.normal(size=(3_000, 2)) + 6.0 * rng.integers(0, 3, (3_000, 1)) * rng.integers(
            0, 2, (3_000, 2)
        )
        search = cv.BayesianGaussianMixture(
            "auto",
            random_state=0,
            max_iter=40,
            n_jobs=1,
            verbose=lambda event: print(event.iteration, flush=True),
        )
        search.fit(rows, checkpoint=checkpoint or None, checkpoint_every=0.0)
        moves = [repr(move) for move in search.moves_]
        Path(result).write_bytes(repr((moves, search.elbo_, search.means_.tobytes())).encode())
        print(len(moves), flush=True)
        return
    # overlapping clusters, so that there are many iterations
    data = {"x": rng.normal(size=(500, 2)) + rng.integers(0, 4, (500, 1)) * [1.2, -0.8]}
    model = cv.models.normal_wishart_mixture(2, 6)
    posterior = model.fit(
        data,
        seed=1,
        n_restarts=2,
        max_iter=40,
        tol=0.0,
        checkpoint=checkpoint or None,
        checkpoint_every=0 if kind == "kill" else 1e6,
        executor=1,
        progress=lambda event: print(event.restart, event.iteration, flush=True),
    )
    theta = posterior["theta"]
    numbers = [
        posterior.elbo_trace,
        posterior.restart_elbos,
        np.array([posterior.elbo, posterior.n_iter]),
        posterior["weights"].concentration,
        *(theta.mean[0], theta.mean_precision, theta.df, theta.inverse_scale),
    ]
    Path(result).write_bytes(b"".join(np.ascontiguousarray(part).tobytes() for part in numbers))
    print(posterior.status.value, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
