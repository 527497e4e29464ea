"""Values of joint distributions."""

from typing import NamedTuple

from caviar._typing import Array


class MeanPrecision(NamedTuple):
    """A value of a joint distribution of a location and its precision."""

    mean: Array
    precision: Array
