"""Posteriors of stated models: what they are, what they say of rows, and rows of a new data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console

import caviar as cv
from caviar.densities import ConditionalPrediction
from caviar.names import Placed
from caviar.posterior.simulation import one_by_one

from ..speaking.outputs import complain, counted, say, standard_error
from ..speaking.results import finite, objective_document
from ..speaking.wording import in_options, status_in_options
from ..tables.arrays import arrays_for, categories_of, columns_of, wanted_arrays
from ..tables.files_and_streams import input_file
from .checked import Checked, as_fitted, rows_of_arrays
from .saved import LEVEL, Saved

_MOST_ROWS = 20
"""Entries of each variable on a terminal; JSON holds them all."""
_DRAWS = 200
"""Draws over which a density without a closed form is averaged."""


class PosteriorOfFile(Saved):
    """The saved posterior of a stated model."""

    def document(self) -> dict[str, Any]:
        return posterior_document(self.fitted)

    def print(self, console: Console) -> None:
        print_statement(console, self.fitted.model)
        say(console)
        say(console, in_options(str(self.fitted.summary(max_rows=_MOST_ROWS))))
        say(console, status_in_options(self.fitted.status))
        data = self.fitted.data_summary
        if data:
            say(console, f"fitted to {counted(data['rows'], 'row')}")

    def data(self, file: str | None, sql: str | None) -> Any:
        return arrays_for(self.fitted, file, sql, needs_observed=True)

    @property
    def kind(self) -> str:
        return str(self.fitted.model)

    def explained(self) -> list[str]:
        names = columns_of(self.fitted)
        return [column for leaf in self.fitted.model.leaves for column in names.get(leaf.name, [leaf.name])]

    def judged(self, file: str | None, sql: str | None) -> dict[str, float]:
        data = self.data(file, sql)
        try:
            return {"held_out": float(np.mean(_log_densities(self.fitted, data)))}
        except cv.ModelError:
            told = "the density of DATA under this model has no closed form, so only its ELBO is compared"
            complain("warning", f"{self.path}: {told}")
            return {}

    def predictions(
        self, file: str | None, sql: str | None, *, level: float | None, quiet: bool
    ) -> dict[str, Any]:
        posterior = self.fitted
        arrays = arrays_for(posterior, file, sql)
        observed = {leaf.name for leaf in posterior.model.leaves}
        if _has_all(posterior, observed, arrays):
            # what the known columns say of the observed ones, as if these were not there
            known = type(arrays)({name: value for name, value in arrays.items() if name not in observed})
            found = posterior.predict(known) if known else {}
            if known and not quiet:
                told = ", ".join(sorted(observed))
                say(standard_error(), f"predicted from the known columns; the values of {told} were not used")
        else:
            found = posterior.predict(arrays)
        names = columns_of(posterior)
        columns: dict[str, Any] = {}
        for name, what in found.items():
            labels = posterior.names.entries(name)
            level_of = None if isinstance(posterior.model.variables[name], cv.Bernoulli) else level or LEVEL
            columns.update(columns_of_prediction(name, what, names.get(name), labels, level=level_of))
        if not any(name.endswith("_lower") for name in columns):
            self.refuse_level(level, "the missing columns and hidden variables are categories")
        if not columns:
            raise cv.DataError(
                f"there is nothing to predict: the rows have every observed variable ({', '.join(sorted(observed))}), "
                f"and the model has no hidden variable of rows. Leave out the columns to predict"
            )
        return columns

    def draws(self, data: str | None, n: int | None, seed: int, *, with_component: bool) -> dict[str, Any]:
        """Return rows of one new data set: the globals drawn from q, and the rest given them."""
        posterior, names = self.fitted, columns_of(self.fitted)
        known = [name for name, is_observed in wanted_arrays(posterior).items() if not is_observed]
        if known and data is None:
            listed = ", ".join(column for name in known for column in names.get(name, [name]))
            raise cv.DataError(
                f"the rows of this model have known columns ({listed}): give them as DATA, and as many rows are drawn: "
                f"caviar sample MODEL DATA -o new.csv"
            )
        if known:
            self.refuse_number(n)
            with input_file(data) as file:
                arrays = arrays_for(posterior, file, None)
                arrays = type(arrays)({name: value for name, value in arrays.items() if name in known})
            drawn = posterior.predictive(data=arrays, seed=seed)
        else:
            if data is not None:
                raise cv.DataError(
                    "this model has no known columns, so it takes no DATA: -n says how many rows to draw"
                )
            plate = posterior.data_plate
            sizes = {} if plate is None or plate.size is not None else {plate.name: n or 1}
            drawn = posterior.predictive(sizes, seed=seed)
        return self._as_columns(drawn)

    def to_check(self, file: str | None, sql: str | None, n_rows: int, seed: int) -> Checked:
        posterior = self.fitted
        data = self.data(file, sql)
        arrays, told, n_chosen = rows_of_arrays(posterior, data, n_rows, seed)
        rows = Placed(arrays, posterior.names) if isinstance(data, Placed) else arrays
        return Checked(n_chosen, told, lambda: (posterior.model, rows, as_fitted(posterior)))

    @property
    def about(self) -> Mapping[str, Any]:
        return (self.fitted.data_summary or {}).get("about", {})

    def _as_columns(self, drawn: dict[str, Any]) -> dict[str, Any]:
        """Return draws as columns of one table."""
        names, categories = columns_of(self.fitted), categories_of(self.fitted)
        columns: dict[str, Any] = {}
        for name, values in drawn.items():
            rows = values[0].reshape(len(values[0]), -1)
            own = names.get(name, [])
            if len(own) != rows.shape[1]:
                own = (
                    [name] if rows.shape[1] == 1 else [f"{name}_{number}" for number in range(rows.shape[1])]
                )
            if name in categories:
                rows = np.array(categories[name])[rows.astype(np.intp)]
            columns.update(zip(own, rows.T, strict=True))
        if len({len(values) for values in columns.values()}) > 1:
            raise cv.DataError(
                "the observed variables of this model have different numbers of rows, which one table cannot hold; "
                "draw in Python: caviar.load(MODEL).predictive(sizes)"
            )
        return columns


def _log_densities(posterior: cv.Posterior, data: Any) -> Any:
    """Return the log density of each row: in closed form, or else averaged over draws of the globals.

    Raises
    ------
    ModelError
        If it has no closed form given the globals either.
    """
    try:
        return posterior.log_predictive(data)
    except cv.ModelError:
        drawn = one_by_one(posterior.sample(_DRAWS, seed=0), _DRAWS)
        found = np.stack([posterior.log_predictive(data, given=values) for values in drawn])
        return np.logaddexp.reduce(found) - np.log(_DRAWS)


def posterior_document(posterior: cv.Posterior) -> dict[str, Any]:
    """Return what the posterior of a stated model says, as JSON can hold it."""
    figures = ("mean", "sd", "lower", "upper")
    return {
        "model": "Posterior",
        **(posterior.data_summary or {}).get("about", {}),
        "statement": statement_document(posterior.model),
        **objective_document(posterior),
        "entries": [
            {
                "variable": row.variable,
                "at": row.index,
                **{name: finite(getattr(row, name)) for name in figures},
            }
            for row in posterior.summary(max_rows=None).rows
        ],
        "interval_remark": posterior.interval_remark,
    }


def statement_document(model: cv.Model) -> dict[str, Any]:
    """Return a statement, as JSON can hold it."""
    return {name: variable.describe() for name, variable in model.variables.items()}


def print_statement(console: Console, model: cv.Model) -> None:
    """Print a line for each variable of a model."""
    say(console, str(model), "bold")
    say(console)
    for name, stated in statement_document(model).items():
        slots = ", ".join(f"{slot}={value}" for slot, value in stated["slots"].items())
        plates = f", plates=({', '.join(stated['plates'])})" if stated["plates"] else ""
        say(console, f"{name} ~ {stated['family']}({slots}{plates})")


def columns_of_prediction(
    name: str,
    what: Any,
    names: list[str] | None,
    labels: Sequence[str] | None = None,
    *,
    level: float | None = None,
) -> dict[str, Any]:
    """Return the columns that tell of a variable; none of one that is repeated within the rows.

    ``level`` is the probability of the interval; None for none.
    """
    probabilities = getattr(what, "probabilities", None)
    if probabilities is not None and np.ndim(probabilities) == 2:
        # of a chain the most probable path, which is more than the most probable state of each step
        label = what.mode() if hasattr(what, "starts") else np.argmax(probabilities, axis=1)
        said = range(probabilities.shape[1]) if labels is None else labels
        shares = dict(
            zip([f"{name}_probability_{k}" for k in said], np.transpose(probabilities), strict=True)
        )
        return {name: np.asarray(label) if labels is None else np.array(labels)[label], **shares}
    mean = getattr(what, "mean", None)
    if mean is None or isinstance(mean, tuple) or np.ndim(mean) not in (1, 2):
        return {}
    spread = getattr(what, "standard_deviation", None)
    spread = _deviation(what) if spread is None else spread
    figures = {"mean": np.asarray(mean), "sd": spread}
    ends = None if level is None else _ends(what, level)
    if ends is not None:
        figures |= dict(zip(("lower", "upper"), ends, strict=True))
    if np.ndim(mean) == 1:
        return {f"{name}_{word}": values for word, values in figures.items()}
    width = np.shape(mean)[1]
    named = names if names is not None and len(names) == width else [f"{name}_{j}" for j in range(width)]
    return {
        f"{column}_{word}": values[:, j] for j, column in enumerate(named) for word, values in figures.items()
    }


def _ends(what: Any, level: float) -> Any:
    """Return the ends of the intervals of predictions, or of factors of hidden variables; None where there are none."""
    if isinstance(what, ConditionalPrediction):
        return what.lower, what.upper
    if isinstance(what, cv.Prediction):
        return what.interval(level) if what.by_moments is not None else None
    own = what.entry_marginals(((1 - level) / 2, (1 + level) / 2))
    return None if len(own) != 1 or own[0].lower is None else (own[0].lower, own[0].upper)


def _has_all(posterior: cv.Posterior, observed: set[str], arrays: dict[str, Any]) -> bool:
    """Whether the data have all observed values, and nothing is hidden in their rows."""
    if not observed <= set(arrays) or posterior.local(arrays):
        return False
    return not any(np.isnan(np.asarray(arrays[name], dtype=np.float64)).any() for name in observed)


def _deviation(factor: Any) -> Any:
    """Return the standard deviations of a factor, of the shape of its mean."""
    if hasattr(factor, "covariance"):
        return np.sqrt(np.diagonal(factor.covariance, axis1=-2, axis2=-1))
    return np.sqrt(factor.variance)
