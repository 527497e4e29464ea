"""Exponentials of many numbers in a loop that numba compiles, the extra ``caviar[compiled]``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from caviar._typing import Array

numba: Any = import_module("numba")
extending: Any = import_module("numba.extending")
ir: Any = import_module("llvmlite.ir")

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
TURN = 6755399441055744.0
"""1.5 * 2^52: a number to which it is added is rounded to a whole one, which its last bits then are."""

FRACTION = 52
"""Bits of a number behind those of its exponent."""

LOWEST = -700.0
"""Number below which an exponential counts as exp(-700)."""


@extending.intrinsic
def _times_two_to(context: Any, number: Any, turned: Any) -> Any:
    """Return a number times 2 to the power of the whole number in the last bits of another."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        own, power = (builder.bitcast(argument, ir.IntType(64)) for argument in arguments)
        shifted = builder.shl(power, ir.Constant(ir.IntType(64), FRACTION))
        return builder.bitcast(builder.add(own, shifted), ir.DoubleType())

    return numba.types.float64(number, turned), write


@numba.njit(nogil=True, cache=True, fastmath={"contract"})
def exponentials(values: Array) -> None:
    """Overwrite numbers of no more than 0 by their exponentials, to the last bits."""
    for i in range(len(values)):
        value = max(values[i], LOWEST)
        turned = value * LOG2_E + TURN
        k = turned - TURN
        r = (value - k * LN2_HIGH) - k * LN2_LOW
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        values[i] = _times_two_to(p * r + 1.0, turned)
