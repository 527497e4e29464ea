"""For error messages: how to state a number 0 or 1 as a label that can choose."""

from __future__ import annotations

from typing import Any

from ..distributions.simplex import Beta
from ..nodes.algebra import LinkOfProbability
from ..nodes.constants import Constant
from ..nodes.node import Indexed
from ..nodes.plates import Plate

__all__ = ["choosing"]


def choosing(name: str, plates: tuple[Plate, ...], probability: Any) -> str:
    """Return what says the same as a number with this probability of a 1, and can index a plate."""
    if isinstance(probability, LinkOfProbability):
        return (
            f"its values as known labels, Data('{name}_label'{_repeated(plates)}), or where these are hidden "
            f"Categorical('{name}', stick_breaking(eta){_repeated(plates)}), whose category 0 has the probability "
            f"logistic(eta), with effects eta on Plate('question', 1)"
        )
    return (
        "an equivalent Categorical of two categories: "
        f"Categorical('{name}', {_probabilities(probability)}{_repeated(plates)})"
    )


def _probabilities(probability: Any) -> str:
    node = probability.node if isinstance(probability, Indexed) else probability
    if isinstance(node, Beta):
        a, b = _shapes_of(node)
        chosen = repr(probability)[len(node.name) :] if isinstance(probability, Indexed) else ""
        return f"Dirichlet('{node.name}', [{b}, {a}]{_repeated(node.plates)}){chosen}"
    if isinstance(node, Constant) and node.value.ndim == 0:
        known = float(node.value)
        return f"[{1 - known:g}, {known:g}]"
    return "np.stack([1 - p, p], axis=-1)"


def _shapes_of(beta: Beta) -> tuple[str, str]:
    """Return a and b as they are stated, or their letters where they are not single numbers."""
    shapes = beta.stated.get("shapes")
    known = shapes.value if isinstance(shapes, Constant) else None
    if known is None or known.ndim != 1:
        return "a", "b"
    return f"{known[0]:g}", f"{known[1]:g}"


def _repeated(plates: tuple[Plate, ...]) -> str:
    if not plates:
        return ""
    names = ", ".join(plate.name for plate in plates)
    return f", plates={names}" if len(plates) == 1 else f", plates=({names})"
