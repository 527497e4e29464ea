"""Where blocks of rows come from."""

from .arrays import ArrayRows

__all__ = ["ArrayRows"]
