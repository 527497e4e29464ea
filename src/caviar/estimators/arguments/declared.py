"""Estimators as dataclasses: each argument is declared once, where it belongs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

from .paragraphs import documented

T = TypeVar("T", bound=type)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def estimator(cls: T) -> T:
    """Give a class an ``__init__`` that keeps its arguments as they came, and its docstrings their shared paragraphs.

    The arguments are the annotated attributes of the class and of those it inherits from. scikit-learn reads them
    from the signature of ``__init__``.
    """
    return documented(dataclass(eq=False, repr=False, kw_only=True)(cls))
