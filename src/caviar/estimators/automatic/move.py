"""A move of the search for the number of components, as the user sees it, and how long its fit goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...engine.ascent.driver import Progress

Groups = tuple[tuple[int, ...], ...]

Until = Callable[[Progress], bool]
"""Whether a fit is to end, by what is told of an iteration."""


@dataclass(frozen=True)
class Patience:
    """How long a fit goes on that has to exceed another one.

    Attributes
    ----------
    least
        Iterations before which no fit is given up.
    ahead
        Iterations in which a fit must catch up at its present speed.
    slow
        Share of what it has gained below which an iteration adds little: what is kept settles later.
    """

    least: int
    ahead: int
    slow: float

    def until(self, aim: float, best: float, weight: float) -> Until:
        """Return what ends a fit that cannot exceed an objective, or that has and adds little.

        Parameters
        ----------
        aim
            The objective to exceed.
        best
            The best so far, from which gains are counted.
        weight
            Of all rows.
        """

        def until(event: Progress) -> bool:
            # of this iteration alone: a fit that goes on after an interruption must end where it would have
            change = event.change_per_row * weight
            if event.elbo > aim:
                return event.iteration >= self.least and change < self.slow * (event.elbo - best)
            return event.iteration >= self.least and event.elbo + self.ahead * change < aim

        return until


@dataclass(frozen=True, repr=False)
class Move:
    """A move that was tried on all rows; it prints as one line.

    Attributes
    ----------
    kind
        ``"split"``, ``"merge"`` or ``"delete"``; for hidden Markov models also ``"birth"``, a new state for successive
        rows that are badly explained, and ``"anew"``, a fit from new starts with one more state.
    components
        Groups of components that were changed at once, numbered as before the move. A group is one component that is
        split or deleted, two that are merged, or the one that loses most rows to a new one.
    elbo_before
        ELBO of the mixture before the move, in nats.
    elbo_after
        ELBO at the end of the fit after the move; for a move that was given up, its ELBO at that time.
    n_components
        Number of components after the move, also if the move was refused.
    accepted
        Whether the ELBO rose and the new mixture was kept.

    Examples
    --------
    >>> Move("split", ((0,),), -1303.87, -1178.47, 2, True)
    split   0            -> 2 components   ELBO -1303.8700 -> -1178.4700  (+125.4)  accepted
    """

    kind: str
    components: Groups
    elbo_before: float
    elbo_after: float
    n_components: int
    accepted: bool

    def __repr__(self) -> str:
        groups = ", ".join("+".join(str(k) for k in group) for group in self.components)
        plural = "s" if self.n_components != 1 else ""
        components = f"{self.n_components} component{plural}"
        return (
            f"{self.kind:<7} {groups:<12} -> {components:<14}  ELBO {self.elbo_before:.4f} -> {self.elbo_after:.4f}  "
            f"({self.elbo_after - self.elbo_before:+.4g})  {'accepted' if self.accepted else 'refused'}"
        )

    def as_plain(self) -> dict[str, Any]:
        """Return the move as plain values, which :meth:`of_plain` reads."""
        return {**vars(self), "components": [list(group) for group in self.components]}

    @classmethod
    def of_plain(cls, values: Mapping[str, Any]) -> Move:
        """Return the move that plain values state.

        Raises
        ------
        ValueError, LookupError, TypeError
            If they state none.
        """
        groups = tuple(tuple(int(k) for k in group) for group in values["components"])
        return cls(
            str(values["kind"]),
            groups,
            float(values["elbo_before"]),
            float(values["elbo_after"]),
            int(values["n_components"]),
            bool(values["accepted"]),
        )
