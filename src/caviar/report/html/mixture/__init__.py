"""The page of a mixture of Gaussians."""

from __future__ import annotations

from .subject import MixtureSubject

__all__ = ["MixtureSubject"]
