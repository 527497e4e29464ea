"""What is fitted: frames with a column of groups, tables that a batch cannot hold, and errors that name their group."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import caviar as cv
from caviar.fitting import progress


def _tables(n_groups: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    sizes = rng.integers(40, 48, n_groups)
    return {
        name: rng.normal(size=(n, 2)) + 6 * (rng.random((n, 1)) < 0.4) + 20 * rng.normal(size=2)
        for name, n in zip(["Bern", "Oslo", "Turin", "Lima"], sizes, strict=True)
    }


def _mixture() -> cv.BayesianGaussianMixture:
    return cv.BayesianGaussianMixture(2, random_state=0)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_a_column_tells_the_groups_of_a_frame(frame: Any) -> None:
    """Rows in any order, the column among the others: each group has the posterior of its own rows."""
    tables = _tables()
    labels = np.repeat(list(tables), [len(own) for own in tables.values()])
    order = np.random.default_rng(0).permutation(len(labels))
    x, y = np.concatenate(list(tables.values()))[order].T
    fits = cv.fit_many(_mixture(), frame({"x": x, "city": labels[order].tolist(), "y": y}), by="city")
    assert fits.keys == tuple(sorted(tables))
    assert fits.is_batched.all()
    for city, own in tables.items():
        assert fits[city].elbo_ == pytest.approx(_mixture().fit(own).elbo_, abs=1e-4)


@pytest.mark.thinned(3)
@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize("by", ["city", None])
def test_a_mixture_of_a_group_knows_the_names_of_its_columns(frame: Any, by: str | None) -> None:
    """In a batch and beside it: the names are those of the table; rows with columns in another order are refused."""
    tables = _tables()
    tables["Oslo"][3, 1] = np.nan
    given: Any = {name: frame({"wait": own[:, 0], "length": own[:, 1]}) for name, own in tables.items()}
    if by is not None:
        labels = np.repeat(list(tables), [len(own) for own in tables.values()])
        wait, length = np.concatenate(list(tables.values())).T
        given = frame({"wait": wait, by: labels.tolist(), "length": length})
    fits = cv.fit_many(_mixture(), given, by=by)
    assert fits.is_batched.sum() == 3
    for city in tables:
        assert fits[city].feature_names_in_.tolist() == ["wait", "length"]
        assert "wait" in str(fits[city].summary())
        with pytest.raises(ValueError, match=r"names|columns"):
            fits[city].predict(frame({"length": [1.0], "wait": [2.0]}))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pd.date_range("2024-01-01", periods=80), "column 'x' of X has dates or times"),
        (2**53 + 1 + 2 * np.arange(80), "column 'x' has 80 different values .* are rounded"),
    ],
    ids=["dates", "identifiers"],
)
def test_columns_that_one_fit_refuses_are_refused(column: Any, words: str) -> None:
    table = pd.DataFrame({"city": ["Bern", "Oslo"] * 40, "x": column})
    with pytest.raises(cv.DataError, match=words):
        cv.fit_many(_mixture(), table, by="city")
    with pytest.raises(cv.DataError, match=words):
        cv.fit_many(_mixture(), [table[["x"]]])


def test_a_place_that_is_the_name_of_another_group_is_told() -> None:
    """Subjects 1, 2, 3: fits[1] is that of subject 2, with a warning, and of(1) that of subject 1."""
    tables = dict(zip([1, 2, 3], list(_tables().values())[:3], strict=True))
    fits = cv.fit_many(_mixture(), tables)
    with pytest.warns(
        cv.CaviarWarning, match=r"fits\[1\] is the group in place 1, whose name is 2; .* fits.of\(1\)"
    ):
        second = fits[1]
    assert second is fits.of(2)
    assert [len(own.means_) for own in fits] == [2, 2, 2]
    assert fits[0] is fits.of(1)
    named_by_place = cv.fit_many(_mixture(), list(tables.values()))
    assert named_by_place[1].elbo_ == pytest.approx(second.elbo_)


def test_groups_may_be_fitted_by_one_component() -> None:
    """Three groups or more are a batch, in which k-means has one cluster."""
    tables = _tables()
    fits = cv.fit_many(cv.BayesianGaussianMixture(1, random_state=0), tables)
    assert fits.is_batched.all()
    for city, own in tables.items():
        alone = cv.BayesianGaussianMixture(1, random_state=0).fit(own)
        assert fits[city].elbo_ == pytest.approx(alone.elbo_, abs=1e-8)


@pytest.mark.thinned(2)
@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("size", [None, 3])
def test_labels_that_are_texts_keep_their_names(size: int | None) -> None:
    """The posterior of a group has the names, and reads the labels of new rows by them."""
    rng = np.random.default_rng(6)
    kinds = np.array(["u", "v", "w"])[rng.integers(3, size=150)]
    table = pd.DataFrame({"city": ["Bern", "Oslo", "Turin"] * 50, "kind": kinds})
    table["y"] = table["kind"].map({"u": -5.0, "v": 0.0, "w": 5.0}) + 0.3 * rng.normal(size=150)
    obs, kind = cv.Plate("obs"), cv.Plate("kind", size)
    effect = cv.Normal("effect", 0.0, 0.1, plates=kind)
    model = cv.Model(cv.Normal("y", effect[cv.Data("kind", plates=obs)], cv.Gamma("tau", 1, 1), plates=obs))
    parts = {city: own[["kind", "y"]] for city, own in table.groupby("city")}
    # a group that lacks a label has other places
    parts["Kiel"] = parts["Bern"][parts["Bern"]["kind"] != "u"] if size is None else parts["Bern"]
    for fits in (cv.fit_many(model, table, by="city"), cv.fit_many(model, parts)):
        for city in fits.keys:
            alone = model.fit(parts[city])
            assert fits[city].names.plate("kind") == alone.names.plate("kind")
            assert fits[city].elbo == pytest.approx(alone.elbo, abs=1e-6)
            new = pd.DataFrame({"kind": ["w", "v"]})
            np.testing.assert_allclose(
                fits[city].predict(new)["y"].mean, alone.predict(new)["y"].mean, atol=1e-4
            )


def test_a_table_with_missing_values_is_fitted_by_itself() -> None:
    tables = _tables()
    tables["Oslo"][3, 1] = np.nan
    fits = cv.fit_many(_mixture(), tables)
    assert fits.is_batched.tolist() == [True, False, True, True]
    assert fits["Oslo"].elbo_ == pytest.approx(_mixture().fit(tables["Oslo"]).elbo_, abs=1e-4)


@pytest.mark.parametrize(
    ("values", "words"),
    [(np.inf, "inf"), (None, "number of features|columns|shape")],
    ids=["infinite", "without columns"],
)
def test_an_error_names_its_group(values: float | None, words: str) -> None:
    tables = _tables()
    if values is None:
        tables["Turin"] = tables["Turin"][:, :0]
    else:
        tables["Turin"][2, 0] = values
    with pytest.raises(cv.CaviarError, match=f"group 'Turin': .*({words})"):
        cv.fit_many(_mixture(), tables)


def test_groups_that_cannot_be_fitted_are_skipped_if_asked() -> None:
    """The others keep their names, fits and order, in a batch and beside it; the warning has the first error."""
    tables = _tables()
    tables["Oslo"][3, 1] = np.nan
    told: list[tuple[int, int]] = []
    mixture = cv.GaussianMixture(2, random_state=0)
    with pytest.warns(
        cv.SkippedGroupsWarning, match="2 of 6 groups are skipped.*group 'Nome': 2 components need"
    ):
        fits = cv.fit_many(
            mixture,
            {"Nome": np.zeros((1, 2)), **tables, "Kiel": np.full((9, 2), np.inf)},
            errors="skip",
            progress=lambda done, total: told.append((done, total)),
        )
    assert fits.keys == tuple(tables)
    assert told[-1] == (6, 6)
    assert list(fits.errors) == ["Nome", "Kiel"]
    assert all(isinstance(error, cv.DataError) for error in fits.errors.values())
    assert fits.is_batched.tolist() == [True, False, True, True]
    assert fits.to_frame().notna().all(axis=None)
    for place, (city, own) in enumerate(tables.items()):
        alone = cv.GaussianMixture(2, random_state=0).fit(own)
        assert fits[city].elbo_ == fits.elbo[place] == pytest.approx(alone.elbo_, abs=1e-4)
    assert "2 skipped, whose errors are in .errors" in fits.summary()
    with pytest.raises(
        cv.ParameterError, match=r"group 'Nome': 2 components need .* \(the group was skipped\)"
    ):
        fits["Nome"]


def test_an_error_of_every_group_is_raised() -> None:
    tables = {name: np.zeros((1, 2)) for name in ("Nome", "Kiel")}
    with pytest.raises(cv.DataError, match="group 'Nome'"):
        cv.fit_many(cv.GaussianMixture(2), tables, errors="skip")
    with pytest.raises(cv.ParameterError, match="errors is 'raise' or 'skip'; got 'ignore'"):
        cv.fit_many(cv.GaussianMixture(2), tables, errors="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("by", "error", "words"),
    [
        ("town", cv.ParameterError, "by='town' names no column; the table has city, x"),
        (None, cv.ParameterError, "one table needs by="),
        ("city", cv.DataError, "column 'city' has rows without a group"),
    ],
)
def test_groups_that_cannot_be_told_are_refused(by: str | None, error: type[Exception], words: str) -> None:
    table = pd.DataFrame({"city": ["Bern", None, "Oslo"], "x": [1.0, 2.0, 3.0]})
    with pytest.raises(error, match=words):
        cv.fit_many(_mixture(), table, by=by)


def test_swaps_are_refused() -> None:
    with pytest.raises(cv.ParameterError, match="fit_many does not swap components; got swaps=True"):
        cv.fit_many(_mixture().set_params(swaps=True), _tables())


def test_progress_tells_of_all_groups_in_the_end() -> None:
    told: list[tuple[int, int]] = []
    cv.fit_many(_mixture(), _tables(), progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (4, 4)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize(("looks", "told"), [(True, None), (True, False), (False, None)])
def test_a_line_is_shown_where_somebody_looks(
    looks: bool, told: bool | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Long work was silent; groups fitted by themselves each had a line of their own, in several threads."""
    monkeypatch.setattr(progress, "somebody_looks", lambda: looks)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    groups = {name: own[:20] for name, own in _tables().items()}
    groups["Oslo"][3, 1] = np.nan
    cv.fit_many(_mixture(), groups, progress=told)
    cv.fit_many(cv.models.gaussian_mixture(2, 2), groups, progress=told, max_iter=3)
    shown = capsys.readouterr().err
    if looks and told is None:
        assert "3 of 4 groups, " in shown
        assert "4 of 4 groups, " in shown
        assert "iteration" not in shown
        assert shown.endswith(" \r")
    else:
        assert shown == ""


def test_the_line_goes_on_within_one_batch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thousand groups of one size are one batch: nothing was shown until all of them had ended."""
    for name, value in (("somebody_looks", lambda: True), ("_PATIENCE", 0.0), ("_PAUSE", 0.0)):
        monkeypatch.setattr(progress, name, value)
    rng = np.random.default_rng(0)
    far = np.linspace(1.0, 6.0, 20)
    tables = [rng.normal(size=(30, 2)) + own * rng.integers(2, size=(30, 1)) for own in far]
    fits = cv.fit_many(_mixture(), tables)
    assert fits.is_batched.all()
    shown = re.findall(r"(\d+) of 20 groups", capsys.readouterr().err)
    assert len(shown) > 3
    assert any(0 < int(done) < 20 for done in shown)
    assert shown[-1] == "20"


def test_tables_of_categories_are_fitted_one_by_one() -> None:
    rng = np.random.default_rng(0)
    row, k = cv.Plate("row"), cv.Plate("k", 2)
    z = cv.Categorical("z", cv.Dirichlet("p", np.ones(2)), plates=row)
    tables_of_k = {name: cv.Dirichlet(f"{name}.t", np.ones(3), plates=k) for name in "xyw"}
    model = cv.Model(*[cv.Categorical(name, own[z], plates=row) for name, own in tables_of_k.items()])
    kinds = [rng.integers(2, size=40 + group) for group in range(4)]
    tables = [
        {
            name: np.where(rng.random(own.size) < 0.15, rng.integers(3, size=own.size), 2 * own)
            for name in "xyw"
        }
        for own in kinds
    ]
    fits = cv.fit_many(model, tables, seed=0, tol=1e-9)
    assert not fits.is_batched.any()
    singly = [model.fit(own, seed=0, tol=1e-9).elbo for own in tables]
    np.testing.assert_allclose([own.elbo for own in fits], singly, rtol=1e-7)


@pytest.mark.parametrize("has_columns", [False, True])
def test_rows_of_columns_are_a_batch_where_groups_have_as_many(has_columns: bool) -> None:
    """A plate of columns, or of sites at which the rate is the same; each fit has the ELBO of its own posterior."""
    rng = np.random.default_rng(0)
    row, k, column = cv.Plate("row"), cv.Plate("k", 2), cv.Plate("column", 3)
    z = cv.Categorical("z", cv.Dirichlet("p", np.ones(2)), plates=row)
    rate = cv.Gamma("rate", 1, 0.2, plates=(k, column) if has_columns else k)
    model = cv.Model(cv.Poisson("x", rate[z], plates=(row, column)))
    for sizes in ([20, 20, 20, 20], [20, 21, 22, 23]):
        tables = [{"x": rng.poisson(2 + 9 * rng.integers(2, size=(n, 1)), size=(n, 3))} for n in sizes]
        fits = cv.fit_many(model, tables, seed=0)
        assert fits.is_batched.all() == (len(set(sizes)) == 1)
        for fit, own in zip(fits, tables, strict=True):
            assert model.fit(own, init=fit, max_iter=0).elbo == pytest.approx(fit.elbo, rel=1e-9)


@pytest.mark.parametrize(
    "what", [cv.BayesianGaussianMixture(2), cv.models.normal_gamma()], ids=["mixture", "model"]
)
def test_a_table_without_rows_has_no_group(what):
    frame = pd.DataFrame({"city": ["a"], "x": [1.0]})[:0]
    with pytest.raises(cv.ParameterError, match="there is no group: the table has no rows"):
        cv.fit_many(what, frame, by="city")


def test_groups_with_a_constant_column_are_fitted_without_a_warning():
    """Each is fitted by itself; the others were asked for a scale of it, and NumPy warned."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"city": np.repeat(list("abcdefgh"), 20), "x": rng.normal(size=160), "y": rng.normal(size=160)}
    )
    frame.loc[frame.city == "c", "y"] = 2.0
    mixture = cv.BayesianGaussianMixture(1, random_state=0)
    fits = cv.fit_many(mixture, frame, by="city")
    alone = mixture.fit(frame[frame.city == "c"][["x", "y"]])
    assert fits.of("c").elbo_ == pytest.approx(alone.elbo_, rel=1e-12)
