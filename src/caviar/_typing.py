"""Names for the array types that annotations use."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
"""A float64 array; the docstring says its shape."""

AnyArray: TypeAlias = NDArray[Any]
"""An array of any type."""

Statistics: TypeAlias = tuple[Array, ...]
"""Values for the sufficient statistics of a family, in the order of its ``statistics``."""
