"""Subjects of estimators whose result is known by name: the states of sequences, and topics, come before the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...estimators._components import column_names
from .checks.section import Checks
from .shared import Progress, Quality, Reproduce, Trust
from .stated.pictures import Pictures
from .stated.rows import Rows
from .stated.statement import Statement
from .stated.subject import ABOUT_THE_MODEL, StatedSubject
from .stated.variables import Variables


class SequencesSubject(StatedSubject):
    """A hidden Markov model: the states along time come first."""

    sections = (Trust(), Rows(), Checks(), *ABOUT_THE_MODEL)

    def heading(self) -> list[tuple[str, str]]:
        hmm, facts = self.estimator, [*self.origin, ("Rows", self.n_rows)]
        sequences = self._n_sequences()
        facts += [] if sequences is None else [("Sequences", f"{sequences:,}")]
        return [*facts, ("Columns", f"{len(column_names(hmm)):,}"), ("States", f"{hmm.n_components_:,}")]

    def _n_sequences(self) -> int | None:
        told: Any = self.about.get("sequences")
        if told is None and self.data is not None:
            return int(np.count_nonzero(self.data["starts"]))
        return told


class TopicsSubject(StatedSubject):
    """Topics of documents: the words of each topic come first."""

    sections = (
        Trust(),
        Pictures(),
        Rows(),
        Variables(),
        Checks(),
        Statement(),
        Quality(),
        Progress(),
        Reproduce(),
    )
