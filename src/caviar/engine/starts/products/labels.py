"""Labels of products: guesses of two hidden labels of the rows that choose the two numbers of a product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...._typing import AnyArray
from ....language import Label, Variable
from ..clustering.multiplied import multiplied
from .columns import Setting, sampled_values
from .residuals import residuals
from .statement import Product, products_of

_KEPT = 4
"""Pairs of labels of a product."""

_MOST_PAIRS, _MOST_COLUMNS = 64, 50
"""Pairs of categories, and columns, up to which labels are found."""


def labels_of_products(setting: Setting, rng: np.random.Generator) -> Iterator[Mapping[Variable, AnyArray]]:
    """Yield two labels of the rows, (n,) each, of each product of numbers that they choose, best first."""
    for product in (own for several in products_of(setting.problem).values() for own in several):
        found = sampled_values(setting.problem, setting.sample, product.leaf)
        if found is None or not _is_chosen_by_labels(setting, product):
            continue
        values = residuals(setting, product.leaf, product.addend, found[0], found[1][1:]).reshape(
            setting.sample.n_rows, -1
        )
        sides = product.given, product.other
        first, second = (side.index.categories for side in sides)
        if (
            first * second > _MOST_PAIRS
            or values.shape[1] > _MOST_COLUMNS
            or np.isnan(values).all(axis=0).any()
        ):
            continue
        filled = np.where(np.isnan(values), np.nanmean(values, axis=0), values)
        varies = len(product.given.variable.plates) > 1, len(product.other.variable.plates) > 1
        weights = setting.sample.row_weights
        for labels in multiplied(filled, weights, (first, second), varies, rng, _KEPT):
            yield {side.index: own for side, own in zip(sides, labels, strict=True)}


def _is_chosen_by_labels(setting: Setting, product: Product) -> bool:
    """Whether two hidden labels of the rows choose two numbers, or two of each column."""
    labels = [side.index for side in (product.given, product.other)]
    return (
        labels[0] is not labels[1]
        and all(isinstance(label, Label) and not setting.problem.bound.is_known(label) for label in labels)
        and all(label.plates == (setting.problem.bound.data_plate,) for label in labels)
        and product.given.size == product.other.size == 1
        and len(product.leaf.plates) <= 2
    )
