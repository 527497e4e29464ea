"""Write a file of the present format version for every kind of saved thing, and beside each the numbers that it gives.

Run from the repository as ``PYTHONPATH=src:tests python tests/storage/stored/make.py`` when the format version was
raised; files of earlier versions stay as they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from storage.statements import fit_of

import caviar as cv
from caviar.storage.document import FORMAT_VERSION

POSTERIORS = (
    "sticks",
    "tied-joint",
    "joint parts",
    "constants",
    "partly known",
    "known pair",
    "hidden Markov",
    "dynamics",
    "topics",
    "utilities",
    "odds",
    "floors",
    "beta and counts",
    "chosen point",
)


def plain(value: Any) -> Any:
    """Return arrays, and what is made of them, as lists."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return np.asarray(value).tolist()


def estimators() -> dict[str, tuple[Any, np.ndarray]]:
    """Return estimators and the rows that they are fitted to."""
    faithful, galaxies = cv.datasets.load_faithful().values, cv.datasets.load_galaxies().values
    map_prior = {"weight_concentration": 2.0, "covariance": np.eye(2), "mean": [3, 70], "mean_precision": 0.1}
    process = {"covariance_type": "diag", "weight_concentration_prior_type": "dirichlet_process"}
    return {
        "bayesian": (cv.BayesianGaussianMixture(3, random_state=0), faithful),
        "process": (cv.BayesianGaussianMixture(4, random_state=0, **process), faithful),
        "auto": (cv.BayesianGaussianMixture("auto", random_state=0), faithful),
        "map": (cv.GaussianMixture(2, prior=map_prior, random_state=0), faithful),
        "known-variance": (cv.KnownVarianceMixture(3, prior_mean=20.0, random_state=0), galaxies),
    }


def keep(folder: Path, name: str, found: Any, numbers: dict[str, Any]) -> None:
    """Write a file and its numbers."""
    found.save(folder / f"{name}.caviar")
    text = json.dumps({"class": type(found).__name__, **numbers}, indent=None)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def updated_elbo(posterior: cv.Posterior, data: dict[str, Any]) -> float | None:
    """Return the ELBO with the same rows again; None for a posterior that can be no prior."""
    try:
        return posterior.update(data, max_iter=1, seed=0).elbo
    except cv.ModelError:
        return None


def posterior_numbers(posterior: cv.Posterior, data: dict[str, Any]) -> dict[str, Any]:
    """Return what a posterior gives for its data."""
    return {
        "data": {name: plain(value) for name, value in data.items()},
        "elbo": posterior.elbo,
        "elbo_at": posterior.elbo_at({}, data),
        "updated": updated_elbo(posterior, data),
        "means": {row.variable + row.index: row.mean for row in posterior.summary(max_rows=None).rows},
    }


def main() -> None:
    """Write the folder of the present format version."""
    folder = Path(__file__).parent / f"format-{FORMAT_VERSION}"
    folder.mkdir(exist_ok=True)
    for name, (estimator, X) in estimators().items():
        estimator.fit(X)
        rows = X[:: len(X) // 6][:6]
        keep(folder, name, estimator, {
            "rows": plain(rows),
            "elbo": estimator.elbo_,
            "score_samples": plain(estimator.score_samples(rows)),
            "predict_proba": plain(estimator.predict_proba(rows)),
        })  # fmt: skip
    for name in POSTERIORS:
        posterior, data = fit_of(name)
        keep(folder, name.replace(" ", "-"), posterior, posterior_numbers(posterior, data))
    first, data = fit_of("points of pairs")
    both = first.update(data, max_iter=2)
    keep(folder, "streamed", both, posterior_numbers(both, data))
    model = first.model
    labels = np.arange(len(data["x"])) // 16
    elbo = model.fit(data, init={"z": labels}, seed=0).elbo
    keep(folder, "model", model, {"data": {"x": plain(data["x"])}, "labels": plain(labels), "elbo": elbo})


if __name__ == "__main__":
    main()
