"""Plots of fitted models and estimators, drawn with Matplotlib (the extra ``plot``), which is loaded at first use.

Every function takes axes to draw into, ``ax=`` or ``axes=``, and gives back the axes it drew into. Without, it makes a
figure of its own with pyplot, in the style of the library; in given axes, fonts, spines and ticks stay as they are.
Components are told apart by colours that differ in lightness, and by markers, hatches or line styles, so that plots
can be read with any colour vision, and in grey.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .._extras import install_command

if TYPE_CHECKING:
    from ._calibration import calibration
    from ._comparison import comparison
    from ._dendrogram import dendrogram
    from ._density import density
    from ._elbo_trace import elbo_trace
    from ._forest import forest
    from ._group_effects import group_effects
    from ._loadings import loadings
    from ._pairs import pairs
    from ._partial_effects import partial_effects
    from ._predictive_check import predictive_check
    from ._prior_posterior import prior_posterior
    from ._regression import regression
    from ._residuals import residuals
    from ._responsibilities import responsibilities
    from ._sensitivity import sensitivity
    from ._state_sequence import state_sequence
    from ._topic_words import topic_words
    from ._weights import weights

__all__ = [
    "calibration",
    "comparison",
    "dendrogram",
    "density",
    "elbo_trace",
    "forest",
    "group_effects",
    "loadings",
    "pairs",
    "partial_effects",
    "predictive_check",
    "prior_posterior",
    "regression",
    "residuals",
    "responsibilities",
    "sensitivity",
    "state_sequence",
    "topic_words",
    "weights",
]


def __getattr__(name: str) -> object:
    """Load a function, and Matplotlib, when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"._{name}", __name__), name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        message = f"plots need Matplotlib ({error}); install it by {install_command('plot')}"
        raise ImportError(message) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
