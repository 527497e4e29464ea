"""Two small, classic data sets, shipped so that examples and tests need no network.

The figures are facts taken from the literature:

- ``load_faithful``: A. Azzalini and A. W. Bowman, "A look at some data on the Old Faithful geyser",
  *Applied Statistics* 39 (1990), 357-365.
- ``load_galaxies``: K. Roeder, "Density estimation with confidence sets exemplified by superclusters and
  voids in galaxies", *Journal of the American Statistical Association* 85 (1990), 617-624.
"""

from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from caviar._typing import Array

__all__ = ["Dataset", "load_faithful", "load_galaxies"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of numbers with the names of its columns.

    Attributes
    ----------
    values
        One row per observation, shape (n_rows, n_columns), float64. A fresh array at every load.
    columns
        The name of each column, in order.
    """

    values: Array
    columns: tuple[str, ...]

    def column(self, name: str) -> Array:
        """Return one column by its name, shape (n_rows,).

        Raises
        ------
        KeyError
            If there is no such column; the message names the columns there are.
        """
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; the columns are {', '.join(map(repr, self.columns))}")
        return self.values[:, self.columns.index(name)]


def load_faithful() -> Dataset:
    """Return 272 eruptions of the Old Faithful geyser in Yellowstone National Park.

    Returns
    -------
    Dataset
        Columns ``eruptions`` (how long the eruption lasted) and ``waiting`` (how long until the next one),
        both in minutes; ``values`` has shape (272, 2).

    Notes
    -----
    Azzalini and Bowman (1990), in the version that R ships as ``faithful``.

    Examples
    --------
    >>> faithful = load_faithful()
    >>> faithful.columns
    ('eruptions', 'waiting')
    >>> faithful.values[:2]
    array([[ 3.6, 79. ],
           [ 1.8, 54. ]])
    """
    return _read("faithful.csv")


def load_galaxies() -> Dataset:
    """Return the velocities of 82 galaxies in the Corona Borealis region.

    Returns
    -------
    Dataset
        The one column ``velocity``, in 1000 km/s and ascending; ``values`` has shape (82, 1).

    Notes
    -----
    Roeder (1990), from the survey of M. Postman, J. P. Huchra and M. J. Geller (*Astronomical Journal* 92,
    1986), in the version that R's MASS ships as ``galaxies``: it has 26.690 where the survey has 26.960.

    Examples
    --------
    >>> galaxies = load_galaxies()
    >>> float(galaxies.column("velocity").max())
    34.279
    """
    return _read("galaxies.csv")


def _read(name: str) -> Dataset:
    lines = (files("caviar.datasets") / name).read_text(encoding="utf-8").splitlines()
    values = np.loadtxt(lines[1:], delimiter=",", ndmin=2, dtype=np.float64)
    return Dataset(values=values, columns=tuple(lines[0].split(",")))
