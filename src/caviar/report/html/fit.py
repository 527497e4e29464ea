"""What was fitted: the kind of mixture, its objective on the way up and at its ends, and what it is made of."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from ..._version import __version__
from ...estimators._uncertainty import mean_marginal
from ..tables import column_names

__all__ = ["fit_facts", "versions"]

_KINDS = {
    "BayesianGaussianMixture": "Bayesian mixture of Gaussians",
    "GaussianMixture": "Maximum-likelihood mixture of Gaussians",
    "KnownVarianceMixture": "Bayesian mixture of Gaussians of known variance",
}
_MOST_STEPS = 400
_TERMS = {
    "x": "how well the rows are explained, given their components",
    "z": "what assigning rows to components costs",
    "weights": "how far the weights have moved from their prior",
    "theta": "how far means and covariances have moved from their prior",
    "mean": "how far the means have moved from their prior",
    "precision": "how far the covariances have moved from their prior",
}


def fit_facts(estimator: Any, used: Sequence[int]) -> dict[str, Any]:
    """Return what a fit says of itself, as plain values.

    Parameters
    ----------
    estimator
        A fitted mixture of Gaussians.
    used
        Its components with rows.
    """
    posterior = estimator.posterior_
    about = dict(getattr(estimator, "about_", {}))
    trace = np.asarray(estimator.elbo_trace_, dtype=np.float64)
    offset = estimator.elbo_ - posterior.elbo
    return {
        "kind": _KINDS.get(type(estimator).__name__, type(estimator).__name__),
        "class": type(estimator).__name__,
        "objective": "log-likelihood" if _is_point(estimator) else "ELBO",
        "is_point": mean_marginal(estimator) is None,
        "n_components": len(estimator.weights_),
        "used": list(used),
        "covariance_type": getattr(estimator, "covariance_type", None),
        "columns": list(column_names(estimator)),
        "elbo": float(estimator.elbo_),
        "trace": _thinned(trace),
        "largest_fall": float(max(0.0, -np.diff(trace).min(initial=0.0))),
        "restarts": [float(end) + offset for end in np.ravel(posterior.restart_elbos)],
        "terms": _terms(posterior, offset),
        "n_iter": int(estimator.n_iter_),
        "max_iter": int(estimator.max_iter),
        "status": posterior.status.value,
        "explanation": posterior.status.explanation,
        "rows": about.get("rows"),
        "source": about.get("source"),
        "query": about.get("query"),
        "seed": about.get("seed"),
        "command": about.get("command"),
        "fitted_with": dict(about.get("versions") or {}),
        "call": repr(estimator),
        "column_summary": about.get("column_summary") or {},
        "missing_entries": about.get("missing_entries"),
    }


def _is_point(estimator: Any) -> bool:
    return type(estimator).__name__ == "GaussianMixture"


def _thinned(trace: Any) -> list[list[float]]:
    """Return (iteration, objective), the first and last among them, of a long trace some hundreds."""
    steps = np.unique(np.linspace(0, len(trace) - 1, min(len(trace), _MOST_STEPS)).round().astype(int))
    return [[int(step), float(trace[step])] for step in steps if np.isfinite(trace[step])]


def _terms(posterior: Any, offset: float) -> list[dict[str, Any]]:
    """Return the parts that the objective is the sum of."""
    terms = [
        {"name": name, "value": float(value), "words": _TERMS.get(name, "")}
        for name, value in posterior.elbo_terms.items()
    ]
    if abs(offset) > 1e-9:
        terms.append({"name": "constant", "value": float(offset), "words": "of the objective's own scale"})
    return terms


def versions() -> dict[str, str]:
    """Return the versions of what the numbers come from.

    Examples
    --------
    >>> sorted(versions())
    ['caviar', 'numpy', 'python', 'scikit-learn', 'scipy']
    """
    found = {"caviar": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
