"""The commands on a saved model: ``caviar show``, ``report``, ``predict`` and ``sample``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import caviar as cv

from .files import require_writable
from .mixtures import GaussianMixtureOfFile, MixedMixtureOfFile
from .regressions import RegressionOfFile
from .results import print_document, print_origin
from .saved import LEVEL, Saved
from .sequences import SequencesOfFile
from .speaking import counted, say, standard_error, standard_output
from .stated import PosteriorOfFile, print_statement, statement_document
from .steps import counting_parts
from .tables import STANDARD, beside, input_file, kept_columns, require_table, source_name, write_result
from .topics import TopicsOfFile

_FIRST_SECTION = 50.0
"""How many times as long as another section the first takes, which makes the fits and draws that all of them show.

Of seven reports it took 0.6 to 0.99 of all seconds, the more of them the longer the report.
"""
_TOLD = ("verdict", "findings", "entries", "rows", "outliers", "quality", "versions")
"""The parts of a page that ``--json`` prints, if it has them."""


def opened(path: Path) -> Saved:
    """Return a saved model that was fitted.

    Raises
    ------
    DataError
        If the file holds a model that was not fitted.
    """
    found = cv.load(path)
    if isinstance(found, cv.Model):
        raise cv.DataError(
            f"{path} contains a model without a fit; fit it in Python and save the posterior: "
            f"caviar.load({str(path)!r}).fit({{'name': array, ...}}).save('fitted.caviar')"
        )
    return _as_saved(found, path)


def _as_saved(found: Any, path: Path) -> Saved:
    if isinstance(found, cv.Posterior):
        try:
            return MixedMixtureOfFile(cv.MixedMixture.from_posterior(found), path)
        except cv.ParameterError:
            return PosteriorOfFile(found, path)
    if isinstance(found, cv.MixedMixture):
        return MixedMixtureOfFile(found, path)
    if isinstance(found, cv.LatentDirichletAllocation):
        return TopicsOfFile(found, path)
    if isinstance(found, cv.HiddenMarkovModel):
        return SequencesOfFile(found, path)
    if isinstance(found, cv.MixedModel):
        return RegressionOfFile(found, path)
    return GaussianMixtureOfFile(found, path)


def show_model(path: Path, *, as_json: bool) -> None:
    """Do what ``caviar show`` does."""
    found, console = cv.load(path), standard_output()
    if isinstance(found, cv.Model) and as_json:
        print_document({"model": "Model", "statement": statement_document(found)})
    elif isinstance(found, cv.Model):
        print_statement(console, found)
    elif as_json:
        print_document(_as_saved(found, path).document())
    else:
        saved = _as_saved(found, path)
        saved.print(console)
        print_origin(console, saved.about)


def write_report(
    model: Path,
    data: str | None,
    sql: str | None,
    output: Path,
    *,
    n_draws: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Do what ``caviar report`` does."""
    require_writable(output, ".html", ".htm", inputs=(data, model))
    saved = opened(model)
    with input_file(data) as file:
        rows = None
        if file is not None or sql is not None:
            rows = saved.data(file, sql)
        with counting_parts(
            standard_error(), "sections of the report", first=_FIRST_SECTION, quiet=quiet
        ) as progress:
            asked = {"source": source_name(data), "n_draws": n_draws}
            told = cv.report.write_and_gather(saved.fitted, output, rows, progress=progress, **asked)
    if as_json:
        print_document({"report": str(output), **{part: told[part] for part in _TOLD if part in told}})
        return
    if not quiet:
        less = "" if rows is not None else "; without DATA it shows no rows, predictions or outliers"
        say(standard_output(), f"report in {output}{less}")


def predict_table(
    model: Path,
    data: str | None,
    sql: str | None,
    output: Path,
    *,
    keep: list[str] | None,
    ahead: int | None,
    level: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Do what ``caviar predict`` does."""
    require_table(output, data, model)
    if keep is not None and ahead is not None:
        raise cv.DataError("--keep copies columns of rows, and a forecast of --ahead has none; leave one out")
    with input_file(data) as file:
        saved = opened(model)
        kept = {} if keep is None else kept_columns(file, sql, keep)
        columns = (
            saved.predictions(file, sql, level=level, quiet=quiet)
            if ahead is None
            else saved.steps_ahead(file, sql, ahead, level or LEVEL)
        )
    columns = beside(kept, columns)
    has_ends = any(name.endswith("_lower") for name in columns)
    _write_rows(
        output,
        columns,
        as_json=as_json,
        quiet=quiet,
        **({"interval": level or LEVEL} if has_ends else {}),
    )


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
    saved = opened(model)
    if with_component and not (saved.has_components or saved.has_states):
        raise cv.DataError(
            "--with-component belongs to mixtures and hidden Markov models, as caviar fit saves them"
        )
    seed = saved.seed if seed is None else seed
    columns = saved.draws(data, n, seed, with_component=with_component)
    _write_rows(output, columns, as_json=as_json, quiet=quiet, seed=seed)


def _write_rows(output: Path, columns: dict[str, Any], *, as_json: bool, quiet: bool, **more: Any) -> None:
    """Write a table, and say so where it went to a file."""
    write_result(output, columns)
    n_rows = len(next(iter(columns.values())))
    if str(output) == STANDARD:
        return
    if as_json:
        print_document({"output": str(output), "rows": n_rows, "columns": list(columns), **more})
    elif not quiet:
        say(standard_output(), f"{counted(n_rows, 'row')} in {output}")
