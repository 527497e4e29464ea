"""Gaps: missing entries and labels that are known in part."""

from __future__ import annotations

from typing import Any

import numpy as np

import caviar as cv

from .statement import Stated

__all__ = ["with_gaps", "with_known_labels", "with_known_numbers"]


def with_gaps(stated: Stated, data: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return data with missing entries, one observed in each row and in each leaf at least."""
    found = dict(data)
    for number, leaf in enumerate(stated.model.leaves):
        values = np.array(data[leaf.name], dtype=float)
        shape = values.shape[: len(leaf.plates)]
        gone = rng.random(shape) < rng.choice([0.0, 0.3])
        if number == 0 and stated.data_plate in leaf.plates:
            # the first leaf keeps an entry of each row
            by_row = np.moveaxis(gone, leaf.plates.index(stated.data_plate), -1)
            by_row[(0,) * (by_row.ndim - 1)] = False
        if gone.any() and not gone.all():
            values[gone] = np.nan
            found[leaf.name] = values
    return found


def with_known_labels(
    stated: Stated, every: dict[str, Any], data: dict[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """Return data with some of the hidden labels told, of the values of all variables."""
    found = dict(data)
    for name in stated.latent:
        variable = stated.model.variables[name]
        if (
            isinstance(variable, cv.Categorical | cv.MarkovChain)
            and stated.data_plate in variable.plates
            and rng.random() < 0.5
        ):
            labels = np.array(every[name], dtype=float)
            labels[rng.random(labels.shape) < 0.6] = np.nan
            if np.isnan(labels).any():
                found[name] = labels
    return found


def with_known_numbers(
    stated: Stated, every: dict[str, Any], data: dict[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """Return data with some of the hidden numbers, vectors and matrices of the rows told, of the values of all."""
    found = dict(data)
    for name in stated.latent:
        variable = stated.model.variables[name]
        is_joint = isinstance(every[name], tuple)
        is_brought = variable.is_brought or "answer" in vars(variable)
        if is_joint or is_brought or variable.summed or not variable.takes_data or variable.is_flat:
            continue
        is_label = isinstance(variable, cv.Categorical | cv.MarkovChain | cv.StickBreaking)
        if is_label or stated.data_plate not in variable.plates or rng.random() < 0.4:
            continue
        values = np.array(every[name], dtype=float)
        gone = rng.random(values.shape[: len(variable.plates)]) < 0.6
        if gone.any() and not gone.all():
            values[gone] = np.nan
            found[name] = values
    return found
