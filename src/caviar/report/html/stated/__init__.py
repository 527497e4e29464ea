"""The page of the posterior of a stated model, of topics, and of mixtures of mixed columns."""

from __future__ import annotations

from .subject import StatedSubject

__all__ = ["StatedSubject"]
