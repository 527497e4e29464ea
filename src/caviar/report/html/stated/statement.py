"""The statement of a model in words: observed, known, hidden and learnt variables, and their distributions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....language import Constant, Data, Variable
from ....posterior.posterior import Posterior
from ..naming import PARTS, in_words, parts_in_words
from ..section import Section

_NODE = re.compile(r"\b[A-Z]\w*\('((?:[^'\\]|\\.)*)'(?:, plates=\([^()]*\))?\)")
"""A node as it prints, of which readers need the name."""


class Statement(Section):
    """The model in words."""

    name, link, template = "statement", "Model", "statement.html"

    def gather(self, subject: Any) -> dict[str, Any]:
        return {"statement": statement_of(subject.posterior, subject.group_sizes, subject.shown_name)}


def statement_of(
    posterior: Posterior, seen: Mapping[str, int] | None = None, shown: Callable[[str], str] = str
) -> list[dict[str, Any]]:
    """Return a line for each variable and known array: name, role, distribution and repetitions.

    Parameters
    ----------
    posterior
        The fit.
    seen
        Plate -> how many of its repetitions the data have, where it has a place for new ones too.
    shown
        Name of a variable, or of a part of a joint one -> what users call it.

    Examples
    --------
    >>> import caviar as cv
    >>> model = cv.models.linear_regression(1)
    >>> posterior = model.fit({"X": [[1.0], [2.0]], "y": [1.0, 3.0]})
    >>> for line in statement_of(posterior):
    ...     print(line["name"], "|", line["role"], "|", line["law"], "|", line["over"])
    y | observed | Normal(mean = dot(X, w), precision = tau) | 2 of obs
    X | known |  | 2 of obs
    tau | learnt | Gamma(shape = 1, rate = 1) |
    w | learnt | MultivariateNormal(mean = 0, precision = 0.01) |
    """
    sizes = {**plate_sizes(posterior), **(seen or {})}
    leaves = {leaf.name for leaf in posterior.model.leaves}
    lines = []
    for node in posterior.model.nodes:
        if isinstance(node, Constant) or _is_membership(node) or _serves_another(node):
            continue
        name = node.name
        if isinstance(node, Data):
            role = "known"
        elif name in posterior._local:
            role = "hidden, for each row"
        else:
            role = "learnt" if name in posterior else "observed"
        lines.append(
            {
                "name": in_words(node, shown),
                "role": role,
                "law": "" if isinstance(node, Data) else _law(node, posterior.model.nodes, shown),
                "over": " × ".join(_repetitions(plate, sizes) for plate in node.plates),
            }
        )
    order = ("observed", "known", "hidden, for each row", "learnt")
    return sorted(lines, key=lambda line: (order.index(line["role"]), line["name"] not in leaves))


def _serves_another(node: Any) -> bool:
    """Whether a variable only serves to state another, as the one behind a link."""
    return isinstance(node, Variable) and node.stated_with is not node


def _is_membership(node: Any) -> bool:
    """Whether a known array only says to which repetition of an outer plate each of an inner one belongs."""
    return isinstance(node, Data) and any(
        plate.within is not None and plate.within.name == node.name for plate in node.plates
    )


def plate_sizes(posterior: Posterior) -> dict[str, int]:
    """Return the sizes of the plates that the fit determines."""
    variables, sizes = posterior.model.variables, {}
    for node in posterior.model.nodes:
        sizes.update({plate.name: plate.size for plate in node.plates if plate.size is not None})
    for name in posterior:
        shape = getattr(posterior[name], "batch_shape", ())
        sizes.update(zip((plate.name for plate in variables[name].batch_plates), shape, strict=False))
    summary = posterior.data_summary or {}
    if posterior.data_plate is not None and "rows" in summary:
        sizes[posterior.data_plate.name] = summary["rows"]
    return sizes


def _repetitions(plate: Any, sizes: Mapping[str, int]) -> str:
    within = f" in each {plate.within.name}" if plate.within is not None else ""
    size = sizes.get(plate.name)
    return f"{plate.name}{within}" if size is None else f"{size:,} of {plate.name}{within}"


def _law(variable: Any, nodes: Sequence[Any], shown: Callable[[str], str]) -> str:
    """Return the distribution, its parents by name and its constants by value."""
    slots: list[str] = []
    for slot, text in variable.describe()["slots"].items():
        known = variable.known(slot)
        if known is None:
            slots += _of_parents(slot, _NODE.sub(_name, text), nodes, shown)
        else:
            slots.append(f"{slot} = {_value(known)}")
    return f"{type(variable).__name__}({', '.join(slots)})"


def _of_parents(slot: str, text: str, nodes: Sequence[Any], shown: Callable[[str], str]) -> list[str]:
    """Return a slot with what users call its parents; a joint one, as in ``theta[z]``, as two slots."""
    for node in nodes:
        name, parts = node.name, parts_in_words(node, shown)
        if parts and re.fullmatch(rf"{re.escape(name)}(\[.*\])?", text):
            return [
                f"{own} = {part}{text.removeprefix(name)}" for own, part in zip(PARTS, parts, strict=True)
            ]
        if not parts and shown(name) != name:
            text = shown(name).join(re.split(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text))
    return [f"{slot} = {text}"]


def _name(match: re.Match[str]) -> str:
    return match.group(1)


def _value(value: Any) -> str:
    """Return a constant in a few signs: equal entries once, a multiple of the identity as its factor."""
    values = np.asarray(value, dtype=np.float64)
    square = values.ndim >= 2 and values.shape[-1] == values.shape[-2]
    if square and values.shape[-1] > 1:
        diagonal = np.diagonal(values, axis1=-2, axis2=-1)
        if np.all(diagonal == diagonal.flat[0]) and np.all(
            values == values[..., :1, :1] * np.eye(values.shape[-1])
        ):
            return f"{diagonal.flat[0]:.4g} × identity"
    if values.size and np.all(values == values.flat[0]):
        return f"{values.flat[0]:.4g}"
    if values.size <= 6 and values.ndim == 1:
        return "[" + ", ".join(f"{entry:.4g}" for entry in values) + "]"
    return f"array of {' × '.join(map(str, values.shape))}"
