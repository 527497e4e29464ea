"""What intervals of a posterior contain of the exact one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caviar._tables import html_of, text_table
from caviar._typing import Array
from caviar.testing._exact_draws import exact_draws

if TYPE_CHECKING:
    from caviar.posterior.posterior import Posterior


@dataclass(frozen=True)
class IntervalCheck:
    """Figures of one variable beside draws of the exact posterior, each in the shape of the variable.

    Attributes
    ----------
    name
        Of the variable; of a joint one with its part, as in "theta.mean".
    content
        Share of the exact draws inside the interval; NaN of an entry without one, as those of a Wishart that are not
        on its diagonal have under their factor.
    shift
        By how many standard deviations of the exact posterior the mean is too high.
    ratio
        Standard deviation, over that of the exact posterior.
    """

    name: str
    content: Array
    shift: Array
    ratio: Array


@dataclass(frozen=True, repr=False)
class IntervalReport:
    """The intervals of a posterior beside draws of the exact one; prints as a table of the worst entries.

    Attributes
    ----------
    checks
        One for each variable.
    level
        Of the intervals.
    error
        Standard error of a content, at most.
    r_hat
        Of the draws: they tell nothing if it is far above 1.
    """

    checks: tuple[IntervalCheck, ...]
    level: float
    error: float
    r_hat: float

    def __getitem__(self, name: str) -> IntervalCheck:
        """Return the check of this name."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"no interval of '{name}'; there are {', '.join(check.name for check in self.checks)}")

    @property
    def worst(self) -> float:
        """The content of all that is farthest from the level."""
        every = np.concatenate([np.ravel(check.content) for check in self.checks])
        return float(every[_farthest(every, self.level)])

    def _cells(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [
            ("variable", f"{self.level:.0%} interval contains", "mean too high by", "sd, of exact")
        ]
        for check in self.checks:
            at = np.unravel_index(_farthest(check.content, self.level), np.shape(check.content))
            where = f"[{', '.join(map(str, at))}]" if at else ""
            figures = check.content[at], check.shift[at], check.ratio[at]
            rows.append(
                (check.name + where, f"{figures[0]:.1%}", f"{figures[1]:.2f} sd", f"{figures[2]:.2f}")
            )
        return rows

    @property
    def _remark(self) -> str:
        return f"Of variables with several entries the worst. Contents ± {self.error:.1%}; R-hat {self.r_hat:.2f}."

    def __repr__(self) -> str:
        """Return the table."""
        return f"{text_table(self._cells(), left={0})}\n{self._remark}"

    def _repr_html_(self) -> str:
        """Return the table, for a notebook."""
        return html_of("", self._cells(), [self._remark])


def check_intervals(
    posterior: Posterior,
    data: Mapping[str, Any],
    *,
    level: float = 0.9,
    n_steps: int = 3_000,
    seed: int | np.random.Generator = 0,
) -> IntervalReport:
    """Return how much of the exact posterior the intervals that a posterior shows contain, and what they are off by.

    The exact posterior is that of :func:`exact_draws`, by Markov chains from the densities of the model. In each draw
    components that the model does not distinguish are put in the order nearest to the fit, see there: a content is that
    of the exact posterior near the fit.

    Parameters
    ----------
    posterior, data, n_steps, seed
        As for :func:`exact_draws`.
    level
        Probability of the intervals, between 0 and 1.

    Raises
    ------
    ModelError
        If a count or a chain of states is hidden, hidden labels of several rows depend on each other, a variable is a
        point mass, the prior of the fit was an earlier posterior, or its rows had weights.

    Warns
    -----
    CaviarWarning
        If the chains have not mixed: ask for more steps.

    Examples
    --------
    >>> import caviar as cv
    >>> tau = cv.Gamma("tau", 1, 1)
    >>> x = cv.Normal("x", cv.Normal("mean", 0, 0.1), tau, plates=cv.Plate("obs"))
    >>> data = {"x": [1.1, 0.3, 2.2, 1.0]}
    >>> report = cv.testing.check_intervals(cv.Model(x).fit(data), data, n_steps=1000)
    >>> abs(report.worst - 0.9) < 0.05
    True
    """
    draws = exact_draws(posterior, data, n_steps=n_steps, seed=seed)
    checks, errors = [], [0.0]
    for name in posterior:
        if name not in draws:
            continue
        for whole, values in _parts(name, draws[name]):
            lower, upper = posterior.interval(whole, level)
            inside = (values >= lower) & (values <= upper)
            mean, sd = values.mean(axis=0), values.std(axis=0)
            varies = sd > 0
            unit = np.where(varies, sd, 1.0)
            shift, ratio = (posterior.mean(whole) - mean) / unit, posterior.sd(whole) / unit
            content = np.where(varies, inside.mean(axis=0), level)
            content = np.where(np.isnan(lower), np.nan, content)
            checks.append(IntervalCheck(whole, content, shift, np.where(varies, ratio, 1.0)))
            of_chains = inside.reshape(draws.n_chains, -1, *inside.shape[1:]).mean(axis=1)
            errors.append(float(np.max(of_chains.std(axis=0, ddof=1)) / np.sqrt(draws.n_chains)))
    return IntervalReport(tuple(checks), level, max(errors), draws.r_hat)


def _farthest(contents: Array, level: float) -> int:
    """Return the place of the content that is farthest from the level, of entries with an interval."""
    return int(np.nan_to_num(np.abs(contents - level), nan=-1.0).argmax())


def _parts(name: str, values: Any) -> Iterator[tuple[str, Array]]:
    """Yield the names and draws of a variable, or of both parts of a joint one."""
    if isinstance(values, tuple):
        yield from zip((f"{name}.mean", f"{name}.precision"), values, strict=True)
    else:
        yield name, values
