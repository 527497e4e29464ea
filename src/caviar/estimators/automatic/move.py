"""A move of the search for the number of components, as the user sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Groups = tuple[tuple[int, ...], ...]


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
