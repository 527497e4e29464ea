"""Saved models, as the commands see them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console

import caviar as cv

from .checked import Checked

LEVEL = 0.95
"""Probability of the intervals of predictions, if the user gives none."""


class Saved(ABC):
    """A fitted model: what each command does with it. There is a class for each kind of model.

    Parameters
    ----------
    fitted
        The fitted object that ``caviar.load`` gives, and the report takes.
    path
        Its file.
    """

    label: ClassVar[str | None] = None
    """What the hidden label of a row is called: component, state; None where rows have no such label."""

    def __init__(self, fitted: Any, path: Path) -> None:
        self.fitted, self.path = fitted, path

    @property
    def posterior(self) -> cv.Posterior:
        """The posterior of its fit."""
        return getattr(self.fitted, "posterior_", self.fitted)

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return everything that it says, as JSON can hold it."""

    @abstractmethod
    def print(self, console: Console) -> None:
        """Print what it is."""

    @abstractmethod
    def data(self, file: str | None, sql: str | None) -> Any:
        """Return data as the report takes them."""

    @abstractmethod
    def predictions(
        self, file: str | None, sql: str | None, *, level: float | None, quiet: bool
    ) -> dict[str, Any]:
        """Return what it says of each row: columns by name; ``level`` is the probability of intervals, if given.

        Raises
        ------
        DataError
            If one was given, and it predicts no numbers.
        """

    @property
    @abstractmethod
    def kind(self) -> str:
        """What it is called."""

    def facts(self) -> dict[str, Any]:
        """Return what a comparison tells of it: kind, objective, n_components, covariance_type, elbo, corrected."""
        return {
            "kind": self.kind,
            "objective": "ELBO",
            "n_components": None,
            "covariance_type": None,
            "elbo": float(getattr(self.fitted, "elbo_", self.posterior.elbo)),
            "corrected": None,
        }

    def explained(self) -> list[str]:
        """Return the columns of which it has a density; none where they are not known."""
        return list(self.about.get("columns") or ())

    def judged(self, file: str | None, sql: str | None) -> dict[str, float]:
        """Return what data say of it, by name: ``held_out``, the mean log density of rows in nats, or a perplexity.

        Raises
        ------
        CaviarError
            If it has none in closed form.
        """
        return {"held_out": float(self.fitted.score(self.data(file, sql)))}

    def draws(self, data: str | None, n: int | None, seed: int, *, with_component: bool) -> dict[str, Any]:
        """Return new rows: columns by name, with their components only where rows have such."""
        self.refuse_data(data)
        rows, labels = self.fitted.sample(n or 1, random_state=seed)
        columns = dict(zip(cv.report.column_names(self.fitted), rows.T, strict=True))
        if not with_component or self.label is None:
            return columns
        if self.label in columns:
            raise cv.DataError(
                f"the model already has a column '{self.label}': leave --with-component out, and use caviar "
                f"predict for the labels"
            )
        return {**columns, self.label: labels}

    @abstractmethod
    def to_check(self, file: str | None, sql: str | None, n_rows: int, seed: int) -> Checked:
        """Return the rows of a table that its model is stated and fitted for again, at most so many.

        Raises
        ------
        CaviarError
            If the check does not take such a model, or the table has no such row.
        """

    @property
    def seed(self) -> int:
        """The seed of its fit, by which its draws are made if the user gives none; 0 where it was not kept."""
        told = (self.about.get("seed"), getattr(self.fitted, "random_state", None))
        return next((int(seed) for seed in told if isinstance(seed, Integral)), 0)

    @property
    def about(self) -> Mapping[str, Any]:
        """What is kept with it of where it comes from."""
        return getattr(self.fitted, "about_", {})

    def steps_ahead(self, file: str | None, sql: str | None, n_steps: int, level: float) -> dict[str, Any]:
        """Return what is expected after each sequence, a row for each step: columns by name.

        Raises
        ------
        DataError
            If its rows are not sequences.
        """
        raise cv.DataError(
            f"--ahead belongs to hidden Markov models, whose rows are in the order of time; {self.path} "
            f"contains another model"
        )

    def refuse_level(self, level: float | None, what: str) -> None:
        """Refuse the probability of intervals where there are none, because rows have something else."""
        if level is not None:
            raise cv.DataError(
                f"--interval belongs to predicted numbers, and this prediction has none: {what}; leave it out"
            )

    def refuse_number(self, n: int | None) -> None:
        """Refuse a number of rows for a model that draws as many as DATA have."""
        if n is not None:
            raise cv.DataError("as many rows are drawn as DATA have; leave -n out")

    def refuse_data(self, data: str | None) -> None:
        """Refuse known columns for a model that draws whole rows."""
        if data is not None:
            raise cv.DataError(
                f"{self.path} takes no DATA: it draws whole rows. Only a model with known columns, such as a "
                f"regression, does"
            )
