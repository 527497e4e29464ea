"""Names and values from a file in messages: short, however long they are in the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_LONGEST = 40
_MOST = 12


def named(name: str) -> str:
    """Return a name or a value in quotes, its end left out where it is long.

    Examples
    --------
    >>> named("weight"), named("x" * 100)
    ("'weight'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'")
    """
    return repr(_cut(name))


def listed(names: Sequence[str]) -> str:
    """Return names one after the other, the last ones left out where there are many.

    Examples
    --------
    >>> listed(["a", "b"]), listed([str(number) for number in range(100)])
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ... (100 in all)')
    """
    told = ", ".join(_cut(name) for name in names[:_MOST])
    return told + (f", ... ({len(names)} in all)" if len(names) > _MOST else "")


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like one that is not among them; None if none is like it.

    Examples
    --------
    >>> nearest("hour", ["hours", "school"]), nearest("X", ["x", "y"]), nearest("age", ["x", "y"])
    ('hours', 'x', None)
    """
    known = list(names)
    same = (own for own in known if own.casefold() == name.casefold())
    return next(same, None) or next(iter(get_close_matches(name, known, 1)), None)


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..."
