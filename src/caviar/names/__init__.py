"""Names of the places along the axes of a model, and data that come with names."""

from .axes import ModelAxes, NamedAxis, check_names
from .meeting import NamedData, Placed, by_names, meet
from .names import Names
from .places import names_with_summary, place_in_words, with_columns

__all__ = [
    "ModelAxes",
    "NamedAxis",
    "NamedData",
    "Names",
    "Placed",
    "by_names",
    "check_names",
    "meet",
    "names_with_summary",
    "place_in_words",
    "with_columns",
]
