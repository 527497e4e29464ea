"""Models of the same data side by side, by their evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..._errors import DataError, ModelError, ParameterError
from ..._tables import html_of, text_table
from ..._typing import Array
from ..pandas_tables import data_frame
from .evidence import Evidence


@dataclass(frozen=True)
class ComparedModel:
    """A model among others.

    Attributes
    ----------
    name
        Name of the model, as given.
    evidence
        Log evidence of the model, with its error and the method.
    difference
        Log evidence minus that of the best model, in nats; 0 for the best.
    difference_error
        Standard error of the difference; infinite if one of the two is only a bound.
    probability
        Probability of the model given the data, if all models are equally probable a priori.
    """

    name: str
    evidence: Evidence
    difference: float
    difference_error: float
    probability: float


@dataclass(frozen=True)
class Comparison:
    """Models by their evidence, the best first, as :func:`caviar.compare` returns them. It prints as a table.

    Attributes
    ----------
    rows
        The models.
    has_data
        Whether the data were there, without which only ELBOs are compared.
    """

    rows: tuple[ComparedModel, ...]
    has_data: bool = False

    @property
    def best(self) -> str:
        """Name of the model with the largest evidence."""
        return self.rows[0].name

    def _cells(self) -> list[tuple[str, ...]]:
        found = [("model", "log p(x)", "error", "ELBO", "method", "difference", "error", "probability")]
        for row in self.rows:
            own = row.evidence
            errors = (_error(own.error), _error(row.difference_error) if row.difference else "")
            figures = (f"{own.value:.2f}", errors[0], f"{own.elbo:.2f}", own.method.replace("_", " "))
            found.append((row.name, *figures, f"{row.difference:.2f}", errors[1], f"{row.probability:.2g}"))
        return found

    @property
    def remark(self) -> str:
        """What to know of the figures; empty if all have an error, priors of all unknowns, and as many orders."""
        bounds = [row.name for row in self.rows if np.isinf(row.evidence.error)]
        whose = ", ".join(f"'{name}'" for name in bounds)
        why = next((row.evidence.because for row in self.rows if row.name in bounds), "")
        better = "method='auto'" if self.has_data else "compare(fits, data)"
        of_bounds = (
            f"For {whose} only the ELBO, a lower bound, is known, so its differences may be off"
            f"{f' ({why})' if why else f'; {better} estimates log p(x)'}."
        )
        flat = sorted({name for row in self.rows for name in row.evidence.without_prior})
        of_flat = (
            f"{', '.join(map(repr, flat))} without a proper prior: log p(x) depends on units, differences do not if "
            f"all models have as many of these numbers."
        )
        more = {row.name: row.evidence.log_orders for row in self.rows}
        shown = ", ".join(f"'{name}' {own:.2f}" for name, own in more.items())
        of_orders = (
            f"Fits have one order of categories that may be numbered in any: if these are well separated, add log K! "
            f"to log p(x) ({shown})."
        )
        differ = max(more.values()) > min(more.values())
        told = ((of_bounds, bounds), (of_flat, flat), (of_orders, differ))
        return " ".join(own for own, is_told in told if is_told)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n".join(filter(None, [text_table(self._cells(), left={0, 4}), self.remark]))

    def _repr_html_(self) -> str:
        return html_of("", self._cells(), [self.remark], bold={1})

    def to_frame(self) -> Any:
        """Return the table as a DataFrame of pandas.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return data_frame(
            {
                "model": [row.name for row in self.rows],
                "log_evidence": [row.evidence.value for row in self.rows],
                "error": [row.evidence.error for row in self.rows],
                "elbo": [row.evidence.elbo for row in self.rows],
                "method": [row.evidence.method for row in self.rows],
                "difference": [row.difference for row in self.rows],
                "difference_error": [row.difference_error for row in self.rows],
                "probability": [row.probability for row in self.rows],
            }
        )


def compare(
    posteriors: Mapping[str, Any],
    data: Any = None,
    *,
    method: str = "auto",
    n_draws: int = 1000,
    seed: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> Comparison:
    """Compare models of the same data by the best estimate of the evidence that is available for each.

    Parameters
    ----------
    posteriors
        Name -> posterior of :meth:`Model.fit`, or fitted estimator. A :class:`GaussianMixture` is refused, because
        point estimates have no evidence; compare these by their ``bic``.
    data
        The data of the fits. For posteriors, a table or a mapping with the observed variables of all models and the
        known arrays of any. For estimators, the table that they were fitted to, or a mapping as for their
        ``evidence``. Without data, models are compared by their ELBOs, which favours models whose posterior is close to
        independent factors.
    method, n_draws, seed, sample_weight
        As for :meth:`Posterior.evidence`.

    Returns
    -------
    Comparison
        It prints as a table, the best model first. Its ``rows`` have the evidence of each model, the method, the
        difference to the best model, and the probability of the model if all are equally probable a priori.

    Raises
    ------
    ParameterError
        If there is no model, one has no evidence, or an unknown is a point or has a flat prior in some of them only.
    ModelError
        If the models observe different variables, whose evidences do not compare.
    DataError
        If the fits were to different rows, weights or units, or the data are not those of a fit.

    Notes
    -----
    The evidence of a mixture is that of the mode of the fit. If its K components are well separated, add log K! before
    you compare different K: a line below the table has these figures, as ``evidence.log_orders`` of each row;
    :func:`compare_mixtures` shows both.

    Examples
    --------
    Has the mean changed?

    >>> import caviar as cv
    >>> obs = cv.Plate("obs")
    >>> def fitted(mean):
    ...     x = cv.Normal("x", mean, cv.Gamma("tau", 2, 2), plates=obs)
    ...     return cv.Model(x).fit(data, tol=1e-12)
    >>> data = {"x": [0.9, 1.4, 0.2, 1.9, 1.1]}
    >>> found = cv.compare({"zero": fitted(0.0), "free": fitted(cv.Normal("m", 0, 1))}, data)
    >>> print(found.best, round(found.rows[1].difference, 1), found.rows[1].evidence.method)
    free -1.8 exact
    """
    _require_comparable(posteriors)
    # names may be numbers, such as numbers of components
    posteriors = {str(name): own for name, own in posteriors.items()}
    arguments = {"n_draws": n_draws, "seed": seed, "sample_weight": sample_weight}
    evidences = {
        name: own.evidence(None, method="elbo")
        if data is None
        else own.evidence(own.data_of_model(data), method=method, **arguments)
        for name, own in posteriors.items()
    }
    ordered = sorted(evidences, key=lambda name: -evidences[name].value)
    best = evidences[ordered[0]]
    differences = np.array([evidences[name].value - best.value for name in ordered])
    shares = np.exp(differences - np.logaddexp.reduce(differences))
    rows = (
        ComparedModel(
            name,
            own,
            float(difference),
            0.0 if own is best else float(np.hypot(own.error, best.error)),
            share,
        )
        for name, difference, share in zip(ordered, differences, shares.tolist(), strict=True)
        for own in [evidences[name]]
    )
    return Comparison(tuple(rows), data is not None)


@runtime_checkable
class _HasEvidence(Protocol):
    """What posteriors and fitted Bayesian estimators can do."""

    @property
    def observed_names(self) -> frozenset[str]:
        """Names of the observed variables."""
        ...

    def data_of_model(self, data: Any) -> Any:
        """Return the part of data that the model has names for."""
        ...

    @property
    def without_prior(self) -> frozenset[str]:
        """Names of unknowns with a flat prior, and of those that are points."""
        ...

    @property
    def data_summary(self) -> Mapping[str, Any] | None:
        """What it was fitted to: rows, their weight, and moments of the arrays."""
        ...

    def evidence(self, data: Any, *, method: str) -> Evidence:
        """Return an estimate of the log evidence."""
        ...


def _require_comparable(posteriors: Any) -> None:
    """Raise an error unless these are posteriors by name, of models that observe the same variables."""
    if not isinstance(posteriors, Mapping) or not posteriors:
        raise ParameterError(
            f"posteriors must be a mapping from names to posteriors, as {{'a': first, 'b': second}}; got "
            f"{posteriors!r:.100}"
        )
    for name, own in posteriors.items():
        if not isinstance(own, _HasEvidence):
            raise ParameterError(
                f"posteriors must come from Model.fit, or be fitted estimators with priors; '{name}', of type "
                f"{type(own).__name__}, is not fitted or has no evidence. Fit it first; compare GaussianMixtures "
                f"by their bic"
            )
    observed = {name: own.observed_names for name, own in posteriors.items()}
    first = next(iter(observed))
    for name, own in observed.items():
        if own != observed[first]:
            raise ModelError(
                f"models must observe the same variables to be compared; '{first}' has {sorted(observed[first])}, and "
                f"'{name}' has {sorted(own)}"
            )
        only = posteriors[first].without_prior ^ posteriors[name].without_prior
        if only:
            which, unknown = (first if min(only) in posteriors[first].without_prior else name), min(only)
            raise ParameterError(
                f"'{unknown}' is a point, or has a flat prior, in '{which}' and not in the others: its log p(x) "
                "depends on units. Give it a proper prior in all of them, or compare the densities of new rows"
            )
        _require_same_data((first, posteriors[first]), (name, posteriors[name]))


def _require_same_data(one: tuple[str, _HasEvidence], other: tuple[str, _HasEvidence]) -> None:
    """Raise an error if summaries tell that two fits were to different data; those of files have no moments."""
    first, second = one[1].data_summary, other[1].data_summary
    if not first or not second or one[1] is other[1]:
        return
    for name in sorted(one[1].observed_names):
        figures = [_figures(summary, name) for summary in (first, second)]
        for what, own in figures[0].items():
            others = figures[1].get(what, own)
            if own.shape == others.shape and not _are_alike(
                own, others, figures[0].get("the standard deviation")
            ):
                raise DataError(
                    f"models are compared by the same data, but '{name}' has {what} {_shown(own)} in the fit "
                    f"'{one[0]}' and {_shown(others)} in '{other[0]}'. Fit all models to the same rows and units"
                )


def _figures(summary: Mapping[str, Any], name: str) -> dict[str, Array]:
    """Return figures of the observed values of a variable that depend on the data alone, in words."""
    own: Mapping[str, Any] = summary.get("arrays", {}).get(name, {})
    found: dict[str, Any] = {}
    if "missing" in own:  # of rows that are read from files nobody counted them
        found["a number of values of"] = np.prod(own["shape"], dtype=np.float64) - own["missing"]
    moments = {"the mean": "mean", "the standard deviation": "standard_deviation"}
    found |= {what: own[key] for what, key in moments.items() if key in own}
    if "weight" in summary:
        found["rows of an average weight of"] = summary["weight"] / summary["rows"]
    return {what: np.asarray(value, dtype=np.float64) for what, value in found.items()}


def _are_alike(own: Array, others: Array, spread: Array | None) -> bool:
    """Whether two figures are the same as far as single precision keeps them."""
    slack = 1e-5 * np.abs(own)
    if spread is not None and spread.shape == own.shape:
        slack = slack + 1e-5 * spread
    return bool((np.abs(own - others) <= slack).all())


def _shown(value: Array) -> str:
    flat = np.ravel(value)
    shown = ", ".join(f"{own:.6g}" for own in flat[:3])
    return f"{shown}, ..." if flat.size > 3 else shown


def _error(error: float) -> str:
    return "" if np.isinf(error) else f"{error:.2g}"
