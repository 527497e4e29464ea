"""Small, classic data sets, shipped so that examples and tests need no network.

Facts taken from the literature, and tables that their authors let everybody pass on (``LICENCES.md`` beside them):

- ``load_faithful``: A. Azzalini and A. W. Bowman, "A look at some data on the Old Faithful geyser",
  *Applied Statistics* 39 (1990), 357-365.
- ``load_galaxies``: K. Roeder, "Density estimation with confidence sets exemplified by superclusters and
  voids in galaxies", *Journal of the American Statistical Association* 85 (1990), 617-624.
- ``load_penguins``: A. M. Horst, A. P. Hill and K. B. Gorman, *palmerpenguins* (2020), CC0.
- ``load_sleepstudy``: G. Belenky et al., "Patterns of performance degradation and restoration during sleep restriction
  and subsequent recovery: a sleep dose-response study", *Journal of Sleep Research* 12 (2003), 1-12.
- ``load_motion_capture``: CMU Graphics Lab Motion Capture Database, as selected and labelled for *bnpy*, BSD-3.
- ``load_political_blogs``: J. Eisenstein and E. Xing, *The CMU 2008 Political Blog Corpus* (2010), as prepared for the
  R package *stm*, MIT.
"""

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np

from caviar._extras import install_command
from caviar._tables import MOST_LINES, html_of, text_table
from caviar._typing import AnyArray, Array

from ._corpus import Corpus, load_political_blogs

__all__ = [
    "Corpus",
    "Dataset",
    "load_faithful",
    "load_galaxies",
    "load_motion_capture",
    "load_penguins",
    "load_political_blogs",
    "load_sleepstudy",
]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table with named columns, which models and estimators accept directly.

    ``table["species"]`` is a column; text columns have texts.

    Attributes
    ----------
    values
        One row per observation, shape (n_rows, n_columns), float64. A fresh array at every load.
    columns
        The name of each column, in order.
    categories
        Name of each text column -> its categories in order; ``values`` contains their positions, from 0.
    """

    values: Array
    columns: tuple[str, ...]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def column(self, name: str) -> Array:
        """Return one column by its name, shape (n_rows,).

        Raises
        ------
        KeyError
            If the column does not exist; the message lists the columns.
        """
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; the columns are {', '.join(map(repr, self.columns))}")
        return self.values[:, self.columns.index(name)]

    def _cells(self) -> list[tuple[str, ...]]:
        """Return the names of the columns, and the first rows."""
        rows = ([_cell(own) for own in self[name][:MOST_LINES]] for name in self.columns)
        return [self.columns, *zip(*rows, strict=True)]

    def __repr__(self) -> str:
        n_rows, n_columns = self.shape
        return f"{text_table(self._cells(), left=())}\n{n_rows:,} rows x {n_columns} columns"

    def _repr_html_(self) -> str:
        """Return the first rows, for a notebook."""
        n_rows, n_columns = self.shape
        return html_of("", self._cells(), [f"{n_rows:,} rows × {n_columns} columns"])

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""
        return self.values.shape

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)

    def __getitem__(self, name: str) -> AnyArray:
        """Return one column by its name, shape (n_rows,): numbers, or words with None where one is missing."""
        values = self.column(name)
        if name not in self.categories:
            return values
        words = (*self.categories[name], None)
        return np.array([words[-1 if np.isnan(own) else int(own)] for own in values], dtype=object)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """Return the numbers, shape (n_rows, n_columns).

        Raises
        ------
        TypeError
            If columns have words.
        """
        if self.categories:
            raise TypeError(
                f"the columns {', '.join(map(repr, self.categories))} have words: pass to_frame(), or columns of "
                f"numbers alone"
            )
        return np.array(self.values, dtype=dtype)

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame, in which text columns contain texts.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> print(load_penguins().to_frame()["species"].value_counts().to_dict())
        {'Adelie': 152, 'Gentoo': 124, 'Chinstrap': 68}
        """
        try:
            from pandas import Categorical, DataFrame
        except ImportError as error:
            command = install_command("tables")
            raise ImportError(f"to_frame needs pandas ({error}); install it by {command}") from error
        columns = {}
        for name in self.columns:
            values = self.column(name)
            if name in self.categories:
                places = np.where(np.isnan(values), -1, values).astype(np.intp)
                columns[name] = Categorical.from_codes(places, list(self.categories[name]))
            else:
                columns[name] = values
        return DataFrame(columns)


def _cell(value: Any) -> str:
    """Return a number, or a word, as a cell of a table; nothing where it is missing."""
    return value if isinstance(value, str) else "" if value is None else f"{value:g}"


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


def load_sleepstudy() -> Dataset:
    """Return the reaction times of 18 subjects on ten days of little sleep.

    Returns
    -------
    Dataset
        Columns ``reaction`` (average reaction time of the day, in ms), ``days`` (of sleep deprivation, from 0) and
        ``subject`` (a number); ``values`` has shape (180, 3).

    Notes
    -----
    Belenky et al. (2003), the subjects with 3 hours in bed, in the version of the R package lme4.

    Examples
    --------
    >>> sleepstudy = load_sleepstudy()
    >>> print(sleepstudy.values[:2])
    [[249.56     0.     308.    ]
     [258.7047   1.     308.    ]]
    """
    return _read("sleepstudy.csv")


def load_penguins() -> Dataset:
    """Return 344 penguins of three species, measured on three islands of the Palmer Archipelago, Antarctica.

    Returns
    -------
    Dataset
        Columns ``species``, ``island`` and ``sex`` (texts, see ``categories``), ``bill_length_mm``, ``bill_depth_mm``,
        ``flipper_length_mm``, ``body_mass_g`` and ``year``; ``values`` has shape (344, 8). NaN marks missing values:
        the measurements of 2 penguins, and the sex of 11.

    Notes
    -----
    Horst, Hill and Gorman (2020), from Gorman, Williams and Fraser, "Ecological sexual dimorphism and environmental
    variability within a community of Antarctic penguins", *PLoS ONE* 9 (2014), e90081.

    Examples
    --------
    >>> penguins = load_penguins()
    >>> penguins.categories["species"]
    ('Adelie', 'Chinstrap', 'Gentoo')
    >>> print(penguins.column("bill_length_mm")[:4])
    [39.1 39.5 40.3  nan]
    """
    return _read_mixed("penguins.csv", words=("species", "island", "sex"))


def load_motion_capture() -> Dataset:
    """Return six recordings of people at physical exercise: 12 angles of their joints, ten times a second.

    Returns
    -------
    Dataset
        Columns ``sequence`` (1 to 6), ``activity`` (texts, see ``categories``; annotated by hand) and 12 angles in
        degrees, named by joint and axis; ``values`` has shape (2058, 14), with rows in order of time.

    Notes
    -----
    Subjects 13 and 14 of the CMU Graphics Lab Motion Capture Database, as selected and labelled by E. B. Fox,
    M. C. Hughes, E. B. Sudderth and M. I. Jordan, "Joint modeling of multiple time series via the beta process",
    *Annals of Applied Statistics* 8 (2014), 1281-1313; rounded to a tenth of a degree.

    Examples
    --------
    >>> capture = load_motion_capture()
    >>> capture.categories["activity"][:4]
    ('ArmCircle', 'Box', 'Jog', 'JumpJack')
    >>> print(capture.values.shape, capture.columns[2:5])
    (2058, 14) ('root.ty', 'lowerback.rx', 'lowerback.ry')
    """
    return _read_mixed("motion_capture.csv.gz", words=("activity",))


def _lines(name: str) -> list[str]:
    data = (files("caviar.datasets") / name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode("utf-8").splitlines()


def _read(name: str) -> Dataset:
    lines = _lines(name)
    values = np.loadtxt(lines[1:], delimiter=",", ndmin=2, dtype=np.float64)
    return Dataset(values=values, columns=tuple(lines[0].split(",")))


def _read_mixed(name: str, words: tuple[str, ...]) -> Dataset:
    """Return a table in which these columns are words, as positions in the sorted words; empty cells are NaN."""
    header, *rows = csv.reader(_lines(name))
    columns, categories = [], {}
    for column, cells in zip(header, zip(*rows, strict=True), strict=True):
        codes: Mapping[str, float] = {}
        if column in words:
            categories[column] = tuple(sorted({*cells} - {""}))
            codes = {word: float(code) for code, word in enumerate(categories[column])}
        columns.append([np.nan if cell == "" else codes[cell] if codes else float(cell) for cell in cells])
    return Dataset(np.column_stack(columns), tuple(header), MappingProxyType(categories))
