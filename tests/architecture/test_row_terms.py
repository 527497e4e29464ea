"""A new row term is a file of its own that says where it applies: here is one that no other file knows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.engine.rows import terms
from caviar.engine.rows.terms import kinds
from caviar.engine.rows.terms.contracted import ContractedTerm
from caviar.engine.rows.terms.products import MatrixTerm

NONZERO = '''
"""The matrix products of a local factor with those dense features that are not zero in all rows of a block."""

import numpy as np

from caviar.engine.rows.terms.products import DenseProduct


class NonzeroProduct(DenseProduct):
    """All dense features of a local factor: smaller products where some are zero in a whole block."""

    widths = set()

    @classmethod
    def of_matrix(cls, layout, others):
        return (cls(layout, others),) if layout.table.n_dense > 20 else ()

    def forward(self, target, work, coefficients, natural):
        used, features = self._used(work)
        matrix = coefficients.matrices[target]
        for other in self._others:
            matrix = other.mask(matrix, work.scratch)
        work.scratch.backend.project(matrix[:, used], features, natural)

    def backward(self, work, sums):
        used, features = self._used(work)
        total = np.zeros((self._layout.n_statistics, self._table.n_rows))
        total[:, used] = work.weighted(self._layout.key) @ features.T
        sums.fused[self._layout.key] = total

    def _used(self, work):
        features = work.features(self._table)
        used = np.flatnonzero(features.any(axis=1))
        self.widths.add(len(used))
        return used, features[used]
'''

CONTRACTED = '''
"""Terms that are contracted by themselves, and counted."""

from caviar.engine.rows.terms.contracted import ContractedTerm


class CountedTerm(ContractedTerm):
    made = []

    @classmethod
    def of_term(cls, local, factor_of):
        cls.made.append(local)
        return cls(local, factor_of)
'''


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Two modules beside the row terms, and the kinds as they are when the library is imported with them."""
    (tmp_path / "nonzero.py").write_text(NONZERO)
    (tmp_path / "counted.py").write_text(CONTRACTED)
    monkeypatch.setattr(terms, "__path__", [*terms.__path__, str(tmp_path)])
    monkeypatch.setattr(kinds, "_MATRIX_TERMS", kinds._kinds(MatrixTerm))
    monkeypatch.setattr(kinds, "_CONTRACTED_TERMS", kinds._kinds(ContractedTerm))
    names = [f"{terms.__name__}.{own}" for own in ("nonzero", "counted")]
    yield {**vars(sys.modules[names[0]]), **vars(sys.modules[names[1]])}
    for name in names:
        del sys.modules[name]


def _counts(n_columns: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.poisson(rng.gamma(1.0, 1.0, (3, n_columns))[rng.integers(3, size=300)]).astype(float)
    x[:, n_columns // 2 :] = 0.0
    return {"x": x}


def _elbo(n_columns: int, **more: Any) -> float:
    model = cv.models.poisson_mixture(n_columns, 3)
    return model.fit(_counts(n_columns), seed=0, max_iter=10, **more).elbo


def test_it_takes_the_place_of_the_kind_that_it_extends_where_it_applies(added: dict[str, Any]):
    widths = added["NonzeroProduct"].widths
    assert (_elbo(8), widths) == (_elbo(8), set())
    assert _elbo(30) == pytest.approx(_elbo(30, executor=2), rel=1e-13)
    assert widths
    assert min(widths) < 30


def test_the_fit_is_that_of_the_kind_that_it_replaces(added: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    with_it = _elbo(30)
    monkeypatch.undo()
    assert with_it == pytest.approx(_elbo(30), rel=1e-12)


def test_terms_that_are_no_matrix_products_are_chosen_alike(
    added: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    rows, rng = cv.Plate("row"), np.random.default_rng(0)
    u, v = (cv.Normal(name, 1.0, 1.0, plates=rows) for name in "uv")
    model = cv.Model(cv.Normal("y", u * v, 4.0, plates=rows))
    data = {"y": rng.normal(size=60)}
    with_it = model.fit(data, seed=0, max_iter=10).elbo
    assert added["CountedTerm"].made
    monkeypatch.undo()
    assert with_it == model.fit(data, seed=0, max_iter=10).elbo


def test_the_kinds_of_the_library_are_found():
    assert {kind.__name__ for kind in kinds._MATRIX_TERMS} == {"DenseProduct", "LookUpProduct"}
    assert {kind.__name__ for kind in kinds._CONTRACTED_TERMS} == {
        "CellsByLabel",
        "ChosenByLabels",
        "ContractedTerm",
    }
