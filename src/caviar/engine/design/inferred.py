"""What kernels need from a local factor, and the result of its inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..._typing import Array


@dataclass(frozen=True)
class Inferred:
    """What inference gives besides the expected statistics of each row.

    Attributes
    ----------
    log_partition
        Of each repetition of each row's factor, shape (plates..., B).
    entropy
        About the base measure, of the same shape; None where it is the log-partition minus <natural, expected> without
        loss.
    """

    log_partition: Array
    entropy: Array | None


class Infers(Protocol):
    """A local factor, as far as kernels ask: natural parameters in, expected statistics out."""

    @property
    def shapes(self) -> Mapping[Any, tuple[int, ...]]:
        """Shape of each of its statistics."""
        ...

    def infer(self, natural: Array) -> Inferred:
        """Overwrite natural parameters (E, B) by expected statistics."""
        ...
