"""What was fitted: the kind of mixture, its objective, and the data that it was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....estimators._uncertainty import mean_marginal
from ...tables import column_names
from ..objective import objective_facts
from ..versions import known_versions

__all__ = ["fit_facts"]

_KINDS = {
    "BayesianGaussianMixture": "Bayesian mixture of Gaussians",
    "GaussianMixture": "Maximum-likelihood mixture of Gaussians",
    "KnownVarianceMixture": "Bayesian mixture of Gaussians of known variance",
}
_TERMS = {
    "x": "how well the rows are explained, given their components",
    "z": "what assigning rows to components costs",
    "weights": "how far the weights have moved from their prior",
    "theta": "how far means and covariances have moved from their prior",
    "mean_precision": "how far the spread of the means has moved from its prior",
    "scale": "how far the typical covariance has moved from its prior",
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
    return {
        **objective_facts(posterior, _TERMS, offset=estimator.elbo_ - posterior.elbo),
        "elbo": float(estimator.elbo_),
        "kind": _KINDS.get(type(estimator).__name__, type(estimator).__name__),
        "class": type(estimator).__name__,
        "objective": "log-likelihood" if _is_point(estimator) else "ELBO",
        "is_point": mean_marginal(estimator) is None,
        "interval_remark": "" if mean_marginal(estimator) is None else posterior.interval_remark,
        "n_components": len(estimator.weights_),
        "used": list(used),
        "covariance_type": getattr(estimator, "covariance_type", None),
        "columns": list(column_names(estimator)),
        "max_iter": int(estimator.max_iter),
        "say_iterations": "--max-iter (max_iter=)",
        "say_starts": "--restarts 10 (n_init=10)",
        "rows": about.get("rows"),
        "source": about.get("source"),
        "query": about.get("query"),
        "seed": about.get("seed"),
        "command": about.get("command"),
        "fitted_with": dict(about.get("versions") or known_versions(posterior)),
        "call": f"import caviar as cv\ncv.{estimator!r}.fit(X)",
        "remarks": _remarks(estimator),
        "column_summary": about.get("column_summary") or {},
        "missing_entries": about.get("missing_entries"),
    }


def _is_point(estimator: Any) -> bool:
    return type(estimator).__name__ == "GaussianMixture"


def _remarks(estimator: Any) -> list[str]:
    """Return what has to be known to fit the same again."""
    if getattr(estimator, "about_", {}).get("command") or "random_state" in repr(estimator):
        return []
    return ["No random_state was given: another run may begin, and end, elsewhere."]
