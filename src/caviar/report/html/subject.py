"""The subject of a page: a fitted model, and data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..._errors import CaviarError
from ...estimators.saveable import Saveable
from ...language import Categorical, Data, Variable
from ...posterior.posterior import Posterior
from ...posterior.prediction.residuals import Residuals
from .checks.section import checks_of
from .naming import in_words
from .numbers import as_numbers, number
from .provenance import file_name, known_versions
from .section import Section
from .seen import Seen, seen_of


class Subject(ABC):
    """The subject of a page; figures that several sections show are computed once."""

    sections: ClassVar[tuple[Section, ...]]
    """The sections of the page, in their order."""
    estimator: Any
    """The estimator around the posterior; None for a stated model."""
    posterior: Posterior
    about: Mapping[str, Any]
    """The facts kept with the fit: source, command, versions, ..."""
    source: str | None
    """The name of the data."""
    data: Mapping[str, Any] | None
    """The data as the posterior takes them; None for none."""
    n_draws: int | None = None
    """Draws that compare the fit with the exact posterior; None for as many as the rows allow."""

    @property
    def has_data(self) -> bool:
        """Whether there are data."""
        return self.data is not None

    @cached_property
    def seen(self) -> Seen | None:
        """Whether the fit has seen the data; None without data."""
        return None if self.data is None else seen_of(self.posterior, self.data)

    @cached_property
    def checks(self) -> dict[str, Any] | None:
        """The data beside data sets of the model, and residuals; None without data."""
        return checks_of(self)

    @cached_property
    def residuals(self) -> list[tuple[Variable, Residuals]]:
        """What the known columns predict, beside what was observed; nothing without data."""
        return [] if self.data is None else residuals_of(self.posterior, self.data)

    @property
    def makes_draws(self) -> bool:
        """Whether draws compare the fit with the exact posterior."""
        return True

    @property
    def observed_columns(self) -> Sequence[str] | None:
        """Names of the columns of what was observed, where the posterior does not know them itself."""
        return None

    @abstractmethod
    def findings(self) -> list[dict[str, str]]:
        """Return what speaks for and against the fit."""

    @abstractmethod
    def quality(self) -> list[dict[str, Any]]:
        """Return figures and remarks for each column of the data."""

    @abstractmethod
    def own_facts(self) -> dict[str, Any]:
        """Return the facts about the fit that depend on its kind."""

    @property
    def origin(self) -> list[tuple[str, str]]:
        """What the model was fitted to, as figures at the head of the page; none where that was not kept."""
        return [("Fitted to", str(self.fit["source"]))] if self.fit["source"] else []

    @property
    def n_rows(self) -> str:
        """The number of rows of the fit, in words."""
        return "not recorded" if self.fit["rows"] is None else f"{self.fit['rows']:,}"

    @abstractmethod
    def heading(self) -> list[tuple[str, str]]:
        """Return the figures at the head of the page, before the objective."""

    def words(self) -> dict[str, str]:
        """Return what each part of the objective says, by its name."""
        return {}

    def shown_name(self, stated: str) -> str:
        """Return what users call a variable, or a part of one: as the summary of the estimator does."""
        return self.estimator._shown_name(stated) if isinstance(self.estimator, Saveable) else stated

    @cached_property
    def shown_factors(self) -> dict[str, str]:
        """Factor, by the name that the objective has for it -> what users call it; a joint one by its parts."""
        variables = self.posterior.model.variables
        return {
            factor: ", ".join(
                in_words(variables[name], self.shown_name) if name in variables else name
                for name in factor.split(", ")
            )
            for factor in self.posterior.elbo_terms
        }

    @property
    def spelled(self) -> dict[str, str]:
        """How to ask for more iterations, starts and draws: options of the command line, or arguments of Python."""
        if self.about.get("command"):
            return {"say_iterations": "--max-iter", "say_starts": "--restarts 10", "say_draws": "--draws "}
        starts = "n_restarts=10" if self.estimator is None else "n_init=10"
        return {"say_iterations": "max_iter=", "say_starts": starts, "say_draws": "n_draws="}

    @property
    def interval_remark(self) -> str:
        """Where the intervals come from, in the names and options that the user of an estimator or command knows."""
        remark = self.posterior.interval_remark
        if isinstance(self.estimator, Saveable):
            remark = self.estimator._in_shown_names(remark)
        if self.about.get("command"):
            remark = remark.replace("uncertainty='linear_response'", "--uncertainty linear-response")
        return remark

    @property
    def offset(self) -> float:
        """The objective of the page minus that of the posterior, in nats."""
        return 0.0

    @cached_property
    def fit(self) -> dict[str, Any]:
        """The facts of the fit, as plain values."""
        about = self.about
        return {
            **objective_facts(self.posterior, self.words(), self.shown_factors, offset=self.offset),
            "source": file_name(about.get("source")),
            "query": about.get("query"),
            "command": about.get("command"),
            "fitted_with": dict(about.get("versions") or known_versions(self.posterior)),
            "interval_remark": self.interval_remark,
            **self.spelled,
            **self.own_facts(),
        }

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The figures at the head of the page."""
        return [*self.heading(), (f"{self.fit['objective']}, nats", number(self.fit["elbo"], 7))]


_MOST_STEPS = 400


def objective_facts(
    posterior: Any, words: dict[str, str], names: Mapping[str, str] | None = None, *, offset: float = 0.0
) -> dict[str, Any]:
    """Return facts about the objective of a fit, as plain values.

    Parameters
    ----------
    posterior
        Of the fit.
    words
        Name of a factor -> what its part of the objective says.
    names
        Name of a factor -> what users call it, if that is something else.
    offset
        What the objective of an estimator is above that of its posterior, in nats.
    """
    trace = np.asarray(posterior.elbo_trace, dtype=np.float64) + offset
    return {
        "elbo": float(posterior.elbo + offset),
        "trace": _thinned(trace),
        "largest_fall": float(max(0.0, -np.diff(trace).min(initial=0.0))),
        "rise": float(trace[-1] - trace[0]),
        "restarts": [float(end) + offset for end in np.ravel(posterior.restart_elbos)],
        "ends": [[end + offset, n_starts] for end, n_starts in posterior.distinct_ends],
        "told_ends": posterior.told_ends,
        "terms": _terms(posterior, words, names or {}, offset),
        "n_iter": int(posterior.n_iter),
        "status": posterior.status.value,
        "explanation": posterior.status.explanation,
    }


def _thinned(trace: Any) -> list[list[float]]:
    """Return (iteration, objective), the first and last among them, of a long trace some hundreds."""
    steps = np.unique(np.linspace(0, len(trace) - 1, min(len(trace), _MOST_STEPS)).round().astype(int))
    return [[int(step), float(trace[step])] for step in steps if np.isfinite(trace[step])]


def _terms(
    posterior: Any, words: dict[str, str], names: Mapping[str, str], offset: float
) -> list[dict[str, Any]]:
    """Return the parts that the objective is the sum of."""
    terms = [
        {"name": names.get(name, name), "value": float(value), "words": words.get(name, "")}
        for name, value in posterior.elbo_terms.items()
    ]
    if abs(offset) > 1e-9:
        terms.append({"name": "constant", "value": float(offset), "words": "of the objective's own scale"})
    return terms


def residuals_of(posterior: Posterior, data: Mapping[str, Any]) -> list[tuple[Variable, Residuals]]:
    """Return the observed variables that known columns predict, labels left out, with their residuals."""
    if not any(isinstance(node, Data) for node in posterior.model.nodes):
        return []
    found = []
    for leaf in posterior.model.leaves:
        if as_numbers(data.get(leaf.name)) is None or isinstance(leaf, Categorical):
            continue
        try:
            own = posterior.residuals(data, leaf.name)
        except CaviarError:
            # its mean has no closed form
            continue
        if np.shape(own.prediction.mean) == own.observed.shape:
            found.append((leaf, own))
    return found
