"""The options of ``caviar compare``, in the order of the help text, and what they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..tables.files import require_writable
from ..tables.non_numeric import NonNumeric
from . import shared as o
from .kinds import KINDS, Covariance, ModelName, given_of
from .shared import option


@dataclass(frozen=True)
class CompareOptions:
    """What the user of ``caviar compare`` said. Each field is an option of its name."""

    data: o.Data = None
    columns: o.Columns = None
    sql: o.Query = None
    non_numeric: o.OtherColumns = NonNumeric.ERROR
    model: Annotated[
        list[Path] | None,
        option(
            metavar="FILE",
            help="A saved model to compare instead of new fits; repeat it for several models. Or topics: "
            "fit topic models.",
        ),
    ] = None
    components: Annotated[
        str,
        option(
            "--components",
            "-k",
            metavar="LIST",
            help="Numbers of components: 1-8, or 2,4,auto.",
            default="1-6",
        ),
    ] = "1-6"
    covariance: Annotated[
        str | None,
        option(metavar="LIST", help="Covariances: full, tied, diag, spherical, unit.", default="full"),
    ] = None
    held_out: Annotated[
        float | None,
        option(
            metavar="SHARE",
            help="Share of rows to hold out and evaluate the fits on, such as 0.25.",
            default="none",
        ),
    ] = None
    restarts: Annotated[
        int,
        option(
            metavar="R", min=1, help="Number of starts of each fit; the best result is kept.", default="3"
        ),
    ] = 3
    seed: Annotated[
        int, option(metavar="S", min=0, help="Random seed; the same seed gives the same result.", default="0")
    ] = 0
    output: Annotated[
        Path | None,
        option("--output", "-o", metavar="FILE", help="File for the best new fit, such as best.caviar."),
    ] = None
    as_json: o.AsJson = False
    quiet: o.Quiet = False
    text: o.TextColumn = None
    encoding: o.Encoding = None
    stop_words: o.StopWords = None
    min_documents: o.MinDocuments = None
    max_words: o.MaxWords = None
    vocabulary: o.VocabularyFile = None

    @property
    def has_topics(self) -> bool:
        """Whether to fit topics, in the place of mixtures."""
        return [str(path) for path in self.model or ()] == ["topics"]

    @property
    def is_mixed(self) -> bool:
        """Whether columns of words are to be categories of mixtures of mixed columns."""
        return self.non_numeric is NonNumeric.CATEGORICAL

    @property
    def saved(self) -> list[Path]:
        """Files of saved models to compare; none to fit new ones."""
        return [] if self.has_topics else self.model or []

    @property
    def numbers(self) -> tuple[int | str, ...]:
        """The numbers of components of new fits."""
        return numbers_of_components(self.components)

    @property
    def covariances(self) -> tuple[str, ...]:
        """The covariances of new fits.

        Raises
        ------
        BadParameter
            If one has no such name.
        """
        names = tuple(dict.fromkeys(part.strip() for part in (self.covariance or "full").split(",")))
        for name in names:
            if name not in {kind.value for kind in Covariance}:
                kinds = ", ".join(kind.value for kind in Covariance)
                raise typer.BadParameter(f"{name!r} is not one of {kinds}", param_hint="--covariance")
        return names

    @property
    def reading(self) -> dict[str, Any]:
        """The options that say how texts are read and that were given, by their names on the command line."""
        return given_of(self, KINDS[ModelName.TOPICS].reading)

    def require_possible(self) -> None:
        """Refuse options that do not belong together, or have impossible values.

        Raises
        ------
        BadParameter
            If there are such.
        """
        said = list(self.reading)
        if self.has_topics:
            _refuse_beside_topics(self.non_numeric, self.covariance)
        elif said:
            raise typer.BadParameter(f"{said[0]} belongs to --model topics")
        if not self.saved:
            o.require_rows(self.data, self.sql)
        elif self.output is not None:
            raise typer.BadParameter(
                "--output saves a new fit, and --model makes no new fit: leave --output out"
            )
        if self.is_mixed and self.covariance is not None:
            raise typer.BadParameter(
                "--covariance belongs to mixtures of Gaussians; with --non-numeric categorical the columns of a "
                "component are independent"
            )
        # to read them refuses impossible ones
        _ = self.numbers, self.covariances
        require_writable(self.output, ".caviar", inputs=(self.data,))


def _refuse_beside_topics(non_numeric: NonNumeric, covariance: str | None) -> None:
    """Refuse options of mixtures for topics."""
    if covariance is not None:
        raise typer.BadParameter("--covariance belongs to mixtures of Gaussians, not to --model topics")
    if non_numeric is not NonNumeric.ERROR:
        raise typer.BadParameter(
            "--non-numeric belongs to mixtures; --text COLUMN holds the documents of topics"
        )


def numbers_of_components(text: str) -> tuple[int | str, ...]:
    """Return the numbers that a text lists.

    Raises
    ------
    BadParameter
        If it lists none.

    Examples
    --------
    >>> numbers_of_components("1-3,8,auto")
    (1, 2, 3, 8, 'auto')
    """
    found: list[int | str] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if low == "auto" and not dash:
            found.append(low)
        elif low.isdecimal() and int(low) >= 1 and (not dash or (high.isdecimal() and int(high) >= int(low))):
            found += range(int(low), int(high or low) + 1)
        else:
            raise typer.BadParameter(
                f"expected numbers such as 1-8 or 2,4,auto; got {text}", param_hint="--components"
            )
    return tuple(dict.fromkeys(found))
