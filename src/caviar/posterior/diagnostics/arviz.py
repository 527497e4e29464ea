"""ArviZ: the one place that knows it, before version 1 (InferenceData) and since (DataTree)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from ..._extras import install_command
from ..._typing import AnyArray


def _loaded(*names: str) -> Any:
    """Return the first of several modules that is there.

    Raises
    ------
    ImportError
        If none is; the message says how to install them.
    """
    with warnings.catch_warnings():
        # the last versions before 1 announce it at every import
        warnings.simplefilter("ignore", FutureWarning)
        for name in names:
            try:
                return import_module(name)
            except ModuleNotFoundError:
                continue
    raise ImportError(
        f"draws for ArviZ need it (no module {names[0]!r}); install it by {install_command('arviz')}"
    )


def as_inference_data(
    groups: Mapping[str, Mapping[str, AnyArray]],
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, AnyArray],
    attrs: Mapping[str, Any],
) -> Any:
    """Return groups of arrays as what the installed ArviZ works on.

    Parameters
    ----------
    groups
        Name of the group -> name of the variable -> array; those of draws have the axes (1, draws) first.
    dims
        Name of a variable -> names of its axes, without those of the draws.
    coords
        Name of an axis -> its labels.
    attrs
        Of the whole.
    """
    named = {name: list(own) for name, own in dims.items()}
    library = _loaded("arviz", "arviz_base")
    # since version 1 the name is there no more, and to ask for it is a warning
    if "InferenceData" in vars(library):
        own = {f"{name}_attrs": dict(attrs) for name in groups if name == "posterior"}
        return library.from_dict(
            **{name: dict(arrays) for name, arrays in groups.items()},
            dims=named,
            coords=dict(coords),
            attrs=dict(attrs),
            **own,
        )
    return library.from_dict(
        {name: dict(arrays) for name, arrays in groups.items()},
        dims=named,
        coords=dict(coords),
        attrs={"/": dict(attrs), "posterior": dict(attrs)},
    )
