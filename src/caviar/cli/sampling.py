"""``caviar sample``: new rows from the density of a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import caviar as cv

from .arrays import arrays_for, categories_of, columns_of, wanted_arrays
from .results import print_document
from .speaking import counted, say, standard_output
from .tables import STANDARD, input_file, load_fitted, require_table, write_result

__all__ = ["write_sample"]


def write_sample(
    model: Path,
    data: str | None,
    n: int | None,
    output: Path,
    *,
    seed: int | None,
    with_component: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Do what ``caviar sample`` does."""
    require_table(output, data, model)
    fitted = load_fitted(model)
    if with_component and not hasattr(fitted, "means_"):
        raise cv.DataError("--with-component belongs to mixtures of Gaussians, as caviar fit saves them")
    if isinstance(fitted, cv.Posterior):
        columns = _of_posterior(fitted, data, n, seed)
    elif data is not None:
        raise cv.DataError(
            f"{model} takes no DATA: it draws whole rows. Only a model with known columns, such as a regression, does"
        )
    elif isinstance(fitted, cv.LatentDirichletAllocation):
        columns = _of_documents(fitted, n or 1, seed)
    else:
        columns = _of_mixture(fitted, n or 1, seed, with_component=with_component)
    write_result(output, columns)
    n_rows = len(next(iter(columns.values())))
    if str(output) == STANDARD:
        return
    if as_json:
        print_document({"output": str(output), "rows": n_rows, "columns": list(columns), "seed": seed})
    elif not quiet:
        say(standard_output(), f"{counted(n_rows, 'row')} in {output}")


def _of_mixture(estimator: Any, n: int, seed: int | None, *, with_component: bool) -> dict[str, Any]:
    rows, labels = estimator.sample(n, random_state=seed)
    names = cv.report.column_names(estimator)
    columns = dict(zip(names, rows.T, strict=True))
    if with_component:
        if "component" in columns:
            raise cv.DataError(
                "the model has a column 'component' of its own: leave --with-component out, and give the rows to "
                "caviar predict"
            )
        columns["component"] = labels
    return columns


def _of_documents(lda: cv.LatentDirichletAllocation, n: int, seed: int | None) -> dict[str, Any]:
    """Return counts of words of new documents, each of the average length of those of the fit."""
    kept = (lda.posterior_.data_summary or {}).get("arrays", {}).get("word", {})
    length = max(1, round(float(np.sum(kept.get("mean", [100.0])))))
    owners = np.repeat(np.arange(n), length)
    drawn = lda.posterior_.predictive({"document": n}, data={"document": owners}, seed=seed)["word"][0]
    counts = np.zeros((n, lda.n_features_in_), dtype=np.int64)
    np.add.at(counts, (owners, drawn.astype(np.int64)), 1)
    return dict(zip(cv.report.column_names(lda), counts.T, strict=True))


def _of_posterior(
    posterior: cv.Posterior, data: str | None, n: int | None, seed: int | None
) -> dict[str, Any]:
    """Return rows of one new data set: the globals drawn from q, and the rest given them."""
    names = columns_of(posterior)
    known = [name for name, is_observed in wanted_arrays(posterior).items() if not is_observed]
    if known and data is None:
        listed = ", ".join(column for name in known for column in names.get(name, [name]))
        raise cv.DataError(
            f"the rows of this model have known columns ({listed}): give them as DATA, and as many rows are drawn: "
            f"caviar sample MODEL DATA -o new.csv"
        )
    if known:
        if n is not None:
            raise cv.DataError("as many rows are drawn as DATA have; leave -n out")
        with input_file(data) as file:
            arrays = {
                name: value for name, value in arrays_for(posterior, file, None).items() if name in known
            }
        drawn = posterior.predictive(data=arrays, seed=seed)
    else:
        if data is not None:
            raise cv.DataError(
                "this model has no known columns, so it takes no DATA: -n says how many rows to draw"
            )
        plate = posterior.data_plate
        sizes = {} if plate is None or plate.size is not None else {plate.name: n or 1}
        drawn = posterior.predictive(sizes, seed=seed)
    columns: dict[str, Any] = {}
    categories = categories_of(posterior)
    for name, values in drawn.items():
        rows = values[0].reshape(len(values[0]), -1)
        own = names.get(name, [])
        if len(own) != rows.shape[1]:
            own = [name] if rows.shape[1] == 1 else [f"{name}_{number}" for number in range(rows.shape[1])]
        if name in categories:
            rows = np.array(categories[name])[rows.astype(np.intp)]
        columns.update(zip(own, rows.T, strict=True))
    if len({len(values) for values in columns.values()}) > 1:
        raise cv.DataError(
            "the observed variables of this model have different numbers of rows, which one table cannot hold; draw in "
            "Python: caviar.load(MODEL).predictive(sizes)"
        )
    return columns
