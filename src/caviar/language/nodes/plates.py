"""Plates: the named repetitions of a model."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable
from numbers import Integral
from typing import Any, TypeAlias

from ..._errors import ParameterError, PlateError


class Plate:
    """A named axis along which a variable is repeated, conditionally independent.

    Parameters
    ----------
    name
        Name of one repetition: ``"obs"``, ``"component"``. Name of the node, unique within a model.
    size
        Number of repetitions. By default it is taken from the data.
    within
        The outer plate, each repetition of which has a different number of these: the tokens of a document. The
        repetitions share a variable of the outer plate: in ``Categorical("z", proportions, plates=token)``,
        ``proportions`` has one vector per document.
    names
        Name of each repetition, in order: ``["Lincoln", "Roosevelt"]``. The number of names is the size. Labels in the
        data may then be these names, and summaries, plots and messages show them. Without ``names``, labels that are
        texts name the repetitions when the model is fitted.

    Raises
    ------
    ParameterError
        If ``name`` is not a non-empty string, ``size`` is not a positive whole number, or is given beside ``within``;
        or if names repeat, are not texts, or differ in number from ``size``.
    PlateError
        If ``within`` is not a plate, or lies within another itself.

    Examples
    --------
    >>> Plate("component", 3)
    Plate('component', 3)
    >>> Plate("obs")
    Plate('obs')
    >>> Plate("token", within=Plate("document"))
    Plate('token', within=Plate('document'))
    >>> Plate("school", names=["Lincoln", "Roosevelt"]).size
    2
    """

    def __init__(
        self,
        name: str,
        size: int | None = None,
        *,
        within: Plate | None = None,
        names: Iterable[str] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ParameterError(f"a plate needs a name, a non-empty string; got {name!r}")
        if size is not None:
            try:
                size = operator.index(size)
            except TypeError:
                size = 0
            if size < 1:
                raise ParameterError(
                    f"the size of plate '{name}' must be a positive whole number or left out"
                )
        if within is not None:
            _check_nesting(name, size, within)
        self.names = None if names is None else as_names(names, f"plate '{name}'", size)
        if self.names is not None and within is not None:
            raise ParameterError(
                f"plate '{name}' lies within '{within.name}', whose repetitions have different numbers of it: it takes "
                f"no names; '{within.name}' does"
            )
        self.name = name
        self.size = size if self.names is None else len(self.names)
        self.within = within

    def __getstate__(self) -> dict[str, Any]:
        """Return the statement alone, without the axes that were made of it."""
        return {name: own for name, own in vars(self).items() if name != "_axes"}

    def __repr__(self) -> str:
        if self.within is not None:
            return f"Plate({self.name!r}, within={self.within!r})"
        return f"Plate({self.name!r})" if self.size is None else f"Plate({self.name!r}, {self.size})"


def as_names(names: Any, owner: str, size: int | None = None) -> tuple[str, ...]:
    """Return names as texts, after checking that none repeats.

    Parameters
    ----------
    names
        Texts, or whole numbers such as years, which become texts.
    owner
        Name of the plate or variable, for messages.
    size
        Number of names that there must be; None for any number.

    Raises
    ------
    ParameterError
        If they are something else; the message says what.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ParameterError(f"names= of {owner} must be a list of texts, as ['a', 'b']; got {names!r}")
    found = []
    for name in names:
        if not isinstance(name, str | Integral) or isinstance(name, bool) or name == "":
            raise ParameterError(f"names= of {owner} must be a list of texts; one of them is {name!r}")
        found.append(str(name))
    twice = next((name for name, n_times in Counter(found).items() if n_times > 1), None)
    if twice is not None:
        raise ParameterError(f"names= of {owner} lists '{twice}' twice: each place needs another name")
    if not found or (size is not None and len(found) != size):
        wanted = "at least one" if size is None else str(size)
        raise ParameterError(f"names= of {owner} must list {wanted}, one for each place; got {len(found)}")
    return tuple(found)


def _check_nesting(name: str, size: int | None, within: Plate) -> None:
    if not isinstance(within, Plate):
        raise PlateError(f"within= of plate '{name}' takes a Plate; got {within!r}")
    if within.within is not None:
        raise PlateError(
            f"plate '{name}' lies within '{within.name}', which lies within '{within.within.name}'; plates are nested "
            f"once. Give '{within.name}' a size instead, and choose what its repetitions share by known labels: "
            f"parent[Data('{within.within.name}', plates={within.name})]"
        )
    if size is not None:
        raise ParameterError(
            f"plate '{name}' lies within '{within.name}', whose repetitions have different numbers of it: "
            f"leave its size {size} out"
        )


Plates: TypeAlias = Plate | tuple[Plate, ...] | list[Plate]


def as_plates(plates: Plates, owner: str) -> tuple[Plate, ...]:
    """Return ``plates`` as a tuple, each of them once.

    Raises
    ------
    PlateError
        If something is not a plate, or a plate is repeated.
    """
    if type(plates) is Plate:
        return (plates,)
    if isinstance(plates, str):
        raise PlateError(
            f"plates= of '{owner}' takes Plate objects; write obs = Plate({plates!r}) once, and plates=obs "
            f"wherever something is repeated over it"
        )
    if not isinstance(plates, Plate | Iterable):
        raise PlateError(
            f"plates= of '{owner}' takes a Plate or several; got {plates!r}. Write Plate('name', size)."
        )
    several = (plates,) if isinstance(plates, Plate) else tuple(plates)
    for plate in several:
        if not isinstance(plate, Plate):
            raise PlateError(
                f"plates= of '{owner}' takes Plate objects; got {plate!r}. Write Plate('name', size)."
            )
    names = [plate.name for plate in several]
    if len(set(names)) < len(names):
        raise PlateError(f"'{owner}' names a plate twice: {', '.join(names)}. Give each axis another plate.")
    return several
