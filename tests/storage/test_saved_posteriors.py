"""A loaded posterior is the saved one: the same model, the same factors, and the same bits in all that it does."""

import dataclasses
import json
import os
import zipfile
from datetime import UTC, datetime

import numpy as np
import pytest

import caviar as cv
from caviar.families import FAMILIES
from caviar.storage import read

from .likeness import assert_same_model, assert_same_posterior, same
from .statements import FITS, fit_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.caviar"


def level(rows):
    """Return a posterior of a mean and a precision."""
    tau = cv.Gamma("tau", 1, 1)
    return cv.Model(cv.Normal("x", cv.Normal("mean", 0, 0.1), tau, plates=cv.Plate("obs"))).fit({"x": rows})


@pytest.mark.thinned(20)
@pytest.mark.parametrize("name", FITS)
def test_a_loaded_posterior_is_the_saved_one(name, path):
    posterior, data = fit_of(name)
    posterior.save(path)
    assert_same_posterior(posterior, cv.load(path), data)
    # one that is integrated over some globals has 2,560 values of each number of these; draws are 16,000 numbers
    of_draws = 180_000 if posterior._shown_as("auto").draws else 0
    assert path.stat().st_size < of_draws + (150_000 if posterior.uncertainty == "integrated" else 25_000)


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", FITS)
def test_a_loaded_model_is_the_saved_one(name, path):
    posterior, data = fit_of(name)
    posterior.model.save(path)
    again = cv.load(path)
    assert_same_model(posterior.model, again)
    arguments = {"seed": 0, "max_iter": 4, **FITS[name][1]}
    assert same(dict(posterior._factors), dict(again.fit(data, **arguments)._factors))


@pytest.mark.thinned(6)
@pytest.mark.parametrize("name", ["joint", "map", "dynamics", "topics", "points of pairs"])
def test_more_rows_go_on_from_a_loaded_posterior(name, path):
    """After several updates, too: what stood in the place of the priors is there."""
    posterior, data = fit_of(name)
    again = posterior
    for _ in range(3):
        again.save(path)
        again = cv.load(path).update(data, max_iter=2, seed=0)
        posterior = posterior.update(data, max_iter=2, seed=0)
        assert_same_posterior(posterior, again, data)
    again.save(path)
    assert_same_posterior(posterior, cv.load(path), data)


def test_every_family_has_letters_for_each_of_its_parameters():
    for family in FAMILIES.values():
        letters = family.parameter_letters
        assert len(letters) == len(dataclasses.fields(family))
        assert set("".join(letters)) <= set("fkdms")


def test_the_file_does_not_grow_with_the_rows_and_holds_none_of_them(path):
    rng, sizes = np.random.default_rng(0), []
    # marks of some rows are kept, as many as there are at most
    for n_rows in (2_000, 20_000):
        rows = rng.normal(size=n_rows)
        level(rows).save(path)
        sizes.append(path.stat().st_size)
        content = path.read_bytes()
        assert not any(value.tobytes() in content for value in rows[:50])
    assert abs(sizes[1] - sizes[0]) < 300


def test_what_it_was_fitted_to_is_told_in_sums(path):
    pandas = pytest.importorskip("pandas")
    x = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, 9.0], [3.0, np.nan]])
    model = cv.Model(cv.Normal("x", 0.0, cv.Gamma("tau", 1, 1), plates=(cv.Plate("obs"), cv.Plate("d", 2))))
    frame = pandas.DataFrame(x, columns=["a", "b"])
    model.fit({"x": frame}, sample_weight=[1, 2, 0.5, 1]).save(path)
    summary = cv.load(path).data_summary
    assert (summary["rows"], summary["weight"]) == (4, 4.5)
    told = summary["arrays"]["x"]
    assert (told["shape"], told["missing"], told["columns"]) == ([4, 2], 2, ["a", "b"])
    np.testing.assert_allclose(told["mean"], np.nanmean(x, axis=0))
    np.testing.assert_allclose(told["standard_deviation"], np.nanstd(x, axis=0))


def test_a_long_table_is_summed_in_blocks():
    rows = np.random.default_rng(1).normal(1e6, 2.0, 150_001)
    told = level(rows).data_summary["arrays"]["x"]
    np.testing.assert_allclose(told["mean"], rows.mean(), rtol=1e-12)
    np.testing.assert_allclose(told["standard_deviation"], rows.std(), rtol=1e-9)


def test_the_header_says_what_it_is_and_when(path):
    before = datetime.now(UTC)
    level([1.0, 2.0]).save(path)
    header, _ = read(path)
    saved = datetime.fromisoformat(header["saved_at"])
    assert (header["class"], header["caviar_version"]) == ("Posterior", cv.__version__)
    assert abs((saved - before).total_seconds()) < 60
    with np.load(path, allow_pickle=False) as arrays:
        assert "posterior/factors/tau/parameters/shape" in arrays
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("header.json"))["posterior"]["local"] == []


def test_a_file_is_replaced_and_left_alone_where_that_fails(path, monkeypatch):
    level([1.0, 2.0]).save(path)
    level([3.0, 4.0]).save(path)
    assert cv.load(path).data_summary["arrays"]["x"]["mean"] == 3.5
    content = path.read_bytes()

    def full(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(cv.DataError, match=r"cannot write .*No space left"):
        level([5.0, 6.0]).save(path)
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_places_that_cannot_be_written_or_read_are_told(tmp_path):
    posterior = level([1.0, 2.0])
    for place in (tmp_path, tmp_path / "no" / "m.caviar", "/proc/m.caviar"):
        with pytest.raises(cv.DataError, match="cannot write"):
            posterior.save(place)
        with pytest.raises(cv.DataError, match="cannot write"):
            posterior.model.save(place)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(cv.DataError, match="not a regular file"):
        cv.load(tmp_path / "pipe")


class Own(cv.Normal):
    """A class that no file can name."""


@pytest.mark.slow
def test_what_could_not_be_loaded_is_not_saved(path):
    own = cv.Model(Own("x", cv.Normal("mean", 0, 1), 1.0, plates=cv.Plate("obs")))
    with pytest.raises(cv.ModelError, match="'x' is a Own, which"):
        own.save(path)
    with pytest.raises(cv.ModelError, match="pickle it"):
        own.fit({"x": [1.0]}).save(path)
    obs, tau = cv.Plate("obs"), cv.Gamma("tau", 1, 1)
    total = sum(cv.Data(f"x{i}", plates=obs) for i in range(600))
    with pytest.raises(cv.ModelError, match="too large to be saved: it has 1440000 products"):
        cv.Model(cv.Normal("y", total, tau, plates=obs)).save(path)
    with pytest.raises(cv.ParameterError, match="cannot be saved"):
        cv.Model(cv.Normal("\ud800", 0.0, tau, plates=obs)).save(path)
    document = cv.Plate("document")
    one = cv.Categorical("a", [0.5, 0.5], plates=cv.Plate("token", within=cv.Plate("document")))
    other = cv.Categorical("b", [0.5, 0.5], plates=document)
    with pytest.raises(cv.ModelError, match="two Plate objects are both named 'document'"):
        cv.Model(one, other).save(path)
    assert not path.exists()


def test_what_was_given_with_the_data_is_asked_for_again(path):
    mean = cv.Normal("mean", 0, 1)
    model = cv.Model(cv.Normal("x", mean, cv.Gamma("tau", 1, 1), plates=cv.Plate("obs")))
    data = {"x": [1.0, 2.0], "mean": 0.5}
    model.fit(data).save(path)
    loaded = cv.load(path)
    assert loaded.elbo_at({}, data) == model.fit(data).elbo_at({}, data)
    for call in (loaded.local, loaded.log_predictive, lambda rows: loaded.elbo_at({}, rows)):
        with pytest.raises(
            cv.ModelError, match="no factor of 'mean': in the fit its values came with the data"
        ):
            call({"x": [1.0]})
