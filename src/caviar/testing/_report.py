"""The result of a verification: checks with their figures, as a table."""

from __future__ import annotations

from dataclasses import dataclass

from caviar._errors import VerificationError
from caviar._tables import html_of, text_table


@dataclass(frozen=True)
class Check:
    """The result of one check of a model.

    Attributes
    ----------
    name
        What was checked.
    figure
        What was measured.
    threshold
        What the figure is compared with.
    passed
        Whether the claim holds.
    sentence
        What was measured and found, in words.
    """

    name: str
    figure: float
    threshold: float
    passed: bool
    sentence: str


@dataclass(frozen=True, repr=False)
class VerificationReport:
    """The checks of one model; prints as a table.

    Examples
    --------
    >>> report = VerificationReport((Check("ascent", 0.0, 1e-9, True, "the ELBO never fell"),))
    >>> print(report)
    check   result  figure  threshold  finding
    ascent  passed       0      1e-09  the ELBO never fell
    >>> report["ascent"].passed
    True
    """

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def __getitem__(self, name: str) -> Check:
        """Return the check of this name."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"no check '{name}' was made; there are {', '.join(c.name for c in self.checks)}")

    def raise_if_failed(self) -> None:
        """Raise an error with the failed checks.

        Raises
        ------
        VerificationError
            Which is an ``AssertionError``, as tests expect.
        """
        failed = [check.name for check in self.checks if not check.passed]
        if failed:
            raise VerificationError(f"the model fails its check of {', '.join(failed)}:\n{self}")

    def _cells(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("check", "result", "figure", "threshold", "finding")]
        return rows + [
            (c.name, "passed" if c.passed else "FAILED", f"{c.figure:.3g}", f"{c.threshold:.3g}", c.sentence)
            for c in self.checks
        ]

    def __repr__(self) -> str:
        """Return the table."""
        return text_table(self._cells(), left={0, 1, 4})

    def _repr_html_(self) -> str:
        """Return the table, for a notebook."""
        return html_of("", self._cells())
