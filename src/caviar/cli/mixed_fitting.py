"""``caviar fit --non-numeric categorical``: columns of numbers and of categories in one mixture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import typer

import caviar as cv
from caviar.data.row_numbers import numbers_rows
from caviar.estimators._data_scale import scale_of

from .ending import end_told
from .fit_request import FitRequest, command_of
from .kinds import ModelName
from .mixed_results import document_of_mixed, print_mixed
from .non_numeric import NumericTable, numbers_only
from .progress import resumptions_told, watching
from .results import print_document
from .rows import complain_of_columns, numbering
from .speaking import gathered_warnings, say, standard_error, standard_output
from .tables import source_name

__all__ = ["fit_mixed", "require_mixed"]


def require_mixed(request: FitRequest) -> None:
    """Refuse what only mixtures of Gaussians have.

    Raises
    ------
    BadParameter
        If the user asked for it: the message says why there is none, and what there is.
    """
    given = [name for name, value in request.options.items() if value is not None]
    if request.model is not ModelName.BAYESIAN:
        what = f"--model {request.model} has no categories; leave --model out"
    elif given:
        what = f"given the component its columns are independent, and there is no {given[0]}; leave it out"
    elif request.arguments.get("n_components") == "auto":
        what = "it takes a number of components; fit several, --components 2, 3, ..., and compare their ELBOs"
    elif request.picture is not None:
        what = "--picture draws mixtures of Gaussians; save it by -o m.caviar, and draw by caviar report m.caviar"
    else:
        return
    raise typer.BadParameter(f"--non-numeric categorical fits a Bayesian mixture of mixed columns: {what}")


def fit_mixed(request: FitRequest, data: str | None) -> None:
    """Fit to a table that is in a file, and print and save the result."""
    numeric = numbers_only(data, request.sql, request.columns, request.non_numeric, quiet=request.quiet)
    table = cv.data.read_table(data, columns=numeric.columns, sql=numeric.sql, missing_ok=True)
    arrays = dict(zip(table.columns, table.values.T, strict=True))
    model = _stated(arrays, numeric.categories, int(request.arguments["n_components"]))
    posterior = _fitted(model, arrays, request)
    posterior.data_summary = _summary(posterior.data_summary or {}, numeric, request)
    if request.output is not None:
        posterior.save(request.output)
    _print(request, posterior)
    complain_of_columns(
        {
            name: {
                "min": float(np.nanmin(values)),
                "max": float(np.nanmax(values)),
                **numbering(name not in numeric.categories and numbers_rows(values)),
            }
            for name, values in arrays.items()
        }
    )
    end_told(posterior.status, posterior.n_iter, output=request.output, checkpoint=request.checkpoint)


def _stated(arrays: Mapping[str, Any], categories: Mapping[str, list[str]], n_components: int) -> cv.Model:
    """Return the model: its priors, in the units of the data, are those of a mixture with diagonal covariances, given.

    They are what ``covariance_prior="empirical"`` and ``mean_precision_prior=1`` say there; no scale is learnt.

    Raises
    ------
    DataError
        If a column has the name of a variable of the model.
    """
    numbers = [name for name in arrays if name not in categories]
    _refuse_taken_names(numbers, categories)
    priors = {}
    if numbers:
        scale = scale_of(np.column_stack([arrays[name] for name in numbers]), correlated=False)
        shape = len(numbers) / 2
        for name, mean, unit in zip(numbers, scale.mean.tolist(), scale.unit.tolist(), strict=True):
            priors[name] = (mean, 1.0, shape, unit**2 / 2)
    return cv.models.mixed_mixture(
        n_components,
        numbers=numbers,
        n_categories={name: len(values) for name, values in categories.items()},
        concentration=1 / n_components,
        number_prior=priors,
    )


def _refuse_taken_names(numbers: list[str], categories: Mapping[str, list[str]]) -> None:
    own = {"z", "weights", *(f"{name}_theta" for name in numbers)}
    own |= {f"{name}_probabilities" for name in categories}
    for name in (*numbers, *categories):
        if name in own:
            raise cv.DataError(
                f"column {name!r} has the name of a variable of the model; give it another: --sql 'SELECT * RENAME "
                f'("{name}" AS "{name}_column") FROM data\''
            )


def _fitted(model: cv.Model, arrays: Mapping[str, Any], request: FitRequest) -> cv.Posterior:
    """Return the posterior, while the progress of the fit is shown."""
    asked = request.arguments
    with (
        resumptions_told(quiet=request.quiet),
        gathered_warnings(),
        watching(standard_error(), "ELBO", quiet=request.quiet, tol=asked["tol"]) as callback,
    ):
        return model.fit(
            arrays,
            seed=asked["random_state"],
            n_restarts=asked["n_init"],
            max_iter=asked["max_iter"],
            tol=asked["tol"],
            executor=asked["n_jobs"],
            checkpoint=request.checkpoint,
            progress=callback,
        )


def _summary(summary: Mapping[str, Any], numeric: NumericTable, request: FitRequest) -> dict[str, Any]:
    """Return the summary of the data with the names of the categories, and where the data and the fit come from."""
    arrays = {
        name: {**own, "categories": list(numeric.categories[name])} if name in numeric.categories else own
        for name, own in summary["arrays"].items()
    }
    about = {
        "source": source_name(request.data),
        "query": request.sql,
        "command": command_of(request),
        "seed": request.arguments["random_state"],
    }
    return {**summary, "arrays": arrays, "about": about}


def _print(request: FitRequest, posterior: cv.Posterior) -> None:
    saved = None if request.output is None else str(request.output)
    if request.as_json:
        print_document(document_of_mixed(posterior, saved=saved))
        return
    console = standard_output()
    print_mixed(console, posterior)
    say(console, f"seed {request.arguments['random_state']}")
    if saved is not None:
        say(console, f"saved in {saved}")
