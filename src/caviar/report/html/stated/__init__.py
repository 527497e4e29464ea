"""The page of the posterior of a stated model, of topics, and of mixtures of mixed columns."""

from __future__ import annotations

from .subject import ABOUT_THE_MODEL, MixedMixtureSubject, MixedModelSubject, StatedSubject

__all__ = ["ABOUT_THE_MODEL", "MixedMixtureSubject", "MixedModelSubject", "StatedSubject"]
