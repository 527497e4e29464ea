"""The commands on a saved model: ``caviar show``, ``report``, ``predict`` and ``sample``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import caviar as cv

from .models.mixtures import GaussianMixtureOfFile, MixedMixtureOfFile
from .models.regressions import RegressionOfFile
from .models.saved import LEVEL, Saved
from .models.sequences import SequencesOfFile
from .models.stated import PosteriorOfFile, print_statement, statement_document
from .models.topics import TopicsOfFile
from .options.saved_options import PredictOptions, ReportOptions, SampleOptions
from .options.shared import column_names_of
from .speaking.outputs import counted, say, standard_error, standard_output
from .speaking.results import print_document, print_origin
from .speaking.steps import counting_parts
from .tables.files import require_writable
from .tables.files_and_streams import (
    STANDARD,
    beside,
    input_file,
    kept_columns,
    require_table,
    source_name,
    write_result,
)

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


def write_report(given: ReportOptions) -> None:
    """Do what ``caviar report`` does."""
    output = given.model.with_suffix(".html") if given.output is None else given.output
    require_writable(output, ".html", ".htm", inputs=(given.data, given.model))
    saved = opened(given.model)
    with input_file(given.data) as file:
        rows = None
        if file is not None or given.sql is not None:
            rows = saved.data(file, given.sql)
        with counting_parts(
            standard_error(), "sections of the report", first=_FIRST_SECTION, quiet=given.quiet
        ) as progress:
            asked = {"source": source_name(given.data), "n_draws": given.draws}
            told = cv.report.write_and_gather(saved.fitted, output, rows, progress=progress, **asked)
    if given.as_json:
        print_document({"report": str(output), **{part: told[part] for part in _TOLD if part in told}})
    elif not given.quiet:
        less = "" if rows is not None else "; without DATA it shows no rows, predictions or outliers"
        say(standard_output(), f"report in {output}{less}")


def predict_table(given: PredictOptions) -> None:
    """Do what ``caviar predict`` does."""
    require_table(given.output, given.data, given.model)
    if given.keep is not None and given.ahead is not None:
        raise cv.DataError("--keep copies columns of rows, and a forecast of --ahead has none; leave one out")
    level, keep = given.interval or LEVEL, column_names_of(given.keep)
    with input_file(given.data) as file:
        saved = opened(given.model)
        kept = {} if keep is None else kept_columns(file, given.sql, keep)
        columns = (
            saved.predictions(file, given.sql, level=given.interval, quiet=given.quiet)
            if given.ahead is None
            else saved.steps_ahead(file, given.sql, given.ahead, level)
        )
    columns = beside(kept, columns)
    has_ends = any(name.endswith("_lower") for name in columns)
    _write_rows(given, columns, **({"interval": level} if has_ends else {}))


def write_sample(given: SampleOptions) -> None:
    """Do what ``caviar sample`` does."""
    require_table(given.output, given.data, given.model)
    saved = opened(given.model)
    if given.with_component and saved.label is None:
        raise cv.DataError(
            "--with-component belongs to mixtures and hidden Markov models, as caviar fit saves them"
        )
    seed = saved.seed if given.seed is None else given.seed
    columns = saved.draws(given.data, given.n, seed, with_component=given.with_component)
    _write_rows(given, columns, seed=seed)


def _write_rows(given: PredictOptions | SampleOptions, columns: dict[str, Any], **more: Any) -> None:
    """Write a table, and say so where it went to a file."""
    output = given.output
    write_result(output, columns)
    n_rows = len(next(iter(columns.values())))
    if str(output) == STANDARD:
        return
    if given.as_json:
        print_document({"output": str(output), "rows": n_rows, "columns": list(columns), **more})
    elif not given.quiet:
        say(standard_output(), f"{counted(n_rows, 'row')} in {output}")
