"""Categories in an order: those of an ordinal response, which texts do not tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .._errors import DataError
from ..data.columns.labels import TextLabels
from ..language import Variable
from .axes import ModelAxes, NamedAxis


def refuse_texts_without_order(
    axes: ModelAxes, labels: Mapping[str, TextLabels], named: Collection[NamedAxis]
) -> None:
    """Refuse texts as the categories of an ordinal response whose order nothing states.

    Parameters
    ----------
    labels
        Labels of the data that are texts.
    named
        Axes whose names are known, from the model or an earlier fit.

    Raises
    ------
    DataError
        With the variable: its categories would be in alphabetical order.
    """
    for name, own in labels.items():
        node = axes.by_name[name]
        if isinstance(node, Variable) and node.has_order and not own.is_ordered:
            if NamedAxis("entry", name) in named:
                continue
            shown = ", ".join(map(repr, sorted(own.distinct())[:4]))
            typed = f"pd.Categorical({name}, categories=[lowest, ...], ordered=True)"
            raise DataError(
                f"the categories of '{name}' are in an order, which texts such as {shown} do not tell: give a column "
                f"of an ordered type, as {typed}, or the numbers 0, 1, ..."
            )
