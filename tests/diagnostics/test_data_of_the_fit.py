"""Weights of draws are taken of the data of the fit alone; a saved fit, too, knows which rows it has seen."""

import numpy as np
import pytest
from invariants.registry import CASES

import caviar as cv
from caviar.engine.row_marks import RowMarks

OBS = cv.Plate("obs")


def regression(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return {"X": X, "y": X @ [1.0, -1.0, 0.5] + rng.normal(size=n)}


def taken(data, rows):
    return {name: np.asarray(values)[rows] for name, values in data.items()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    data = regression(80)
    path = tmp_path_factory.mktemp("fits") / "regression.caviar"
    cv.models.linear_regression(3).fit(data, seed=0).save(path)
    return cv.load(path), data


OTHER = {
    "new rows": lambda data: regression(80, seed=1),
    "half of the rows": lambda data: taken(data, np.arange(40)),
    "rows twice": lambda data: taken(data, np.tile(np.arange(80), 2)),
    "answers of other rows": lambda data: {**data, "y": data["y"][::-1]},
    "one answer changed": lambda data: {**data, "y": data["y"] + np.eye(80)[7]},
}


@pytest.mark.parametrize("name", OTHER)
def test_other_data_than_those_of_the_fit_have_no_weights(saved, name):
    posterior, data = saved
    other = OTHER[name](data)
    assert not posterior.is_fit_of(other)
    with pytest.raises(cv.DataError, match="expected the data of the fit, for which q has an ELBO of"):
        posterior.diagnose(other, n_draws=100, seed=0)


def test_weights_of_rows_belong_to_the_data(saved):
    posterior, data = saved
    assert posterior.is_fit_of(data, sample_weight=np.ones(80))
    with pytest.raises(cv.DataError, match=r"give the data \(and sample_weight=\) of the fit"):
        posterior.diagnose(data, n_draws=100, sample_weight=np.full(80, 2.0))


def test_the_order_of_rows_and_their_repetition_by_weights_do_not_matter(saved):
    posterior, data = saved
    shuffled = taken(data, np.random.default_rng(3).permutation(80))
    assert posterior.is_fit_of(shuffled)
    twice = cv.models.linear_regression(3).fit(taken(data, np.tile(np.arange(80), 2)), seed=0)
    assert twice.is_fit_of(data, sample_weight=np.full(80, 2.0))
    found = [posterior.diagnose(own, n_draws=100, seed=0) for own in (data, shuffled)]
    np.testing.assert_allclose(found[0].log_weights, found[1].log_weights, rtol=1e-9)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", [name for name in CASES if name != "measured-apart"])
def test_every_fit_knows_its_data(name):
    """Except local variables with a factor each, whose sweeps may end elsewhere: these have no weights anyhow."""
    case = CASES[name]
    data = case.draw(np.random.default_rng(0), 40)
    posterior = case.fit(data, max_iter=5)
    assert posterior.is_fit_of(data)
    assert posterior.share_seen(data) == 1
    assert not posterior.is_fit_of(case.draw(np.random.default_rng(1), 40))


@pytest.mark.parametrize("schedule", ["batch", "incremental", "stochastic"])
def test_every_schedule_knows_its_data(schedule):
    X = np.random.default_rng(0).normal(size=(5000, 2))
    model = cv.models.gaussian_mixture(2, 2)
    posterior = model.fit({"x": X}, seed=0, schedule=schedule, max_iter=3)
    assert posterior.is_fit_of({"x": X[::-1]})
    assert not posterior.is_fit_of({"x": X[1:]})


def test_arviz_gets_no_weights_of_other_data(saved):
    posterior, data = saved
    tree = posterior.to_arviz(regression(30, seed=1), n_draws=10)
    assert list(tree["sample_stats"]) == ["log_q"]
    assert "log_likelihood: the data are not those of the fit" in tree.attrs["left_out"]
    assert "observed_data" in tree
    assert "log_likelihood" in posterior.to_arviz(data, n_draws=10)


@pytest.mark.parametrize("n_rows", [80, 20_000])
def test_the_share_of_rows_that_were_seen(n_rows, tmp_path):
    """All are known of few rows; of many a sample, whose error for half of 2,000 is 0.05 at most."""
    data, other = regression(n_rows), regression(n_rows, seed=1)
    posterior = cv.models.linear_regression(3).fit(data, max_iter=1)
    posterior.save(tmp_path / "fit.caviar")
    found = cv.load(tmp_path / "fit.caviar")
    half = n_rows // 2
    mixed = {name: np.concatenate([data[name][:half], other[name][:half]]) for name in data}
    assert found.share_seen(data) == 1
    assert found.share_seen(taken(data, np.arange(0, n_rows, 2))) == 1
    assert found.share_seen(other) == 0
    assert found.share_seen(mixed) == pytest.approx(0.5, abs=0.0 if n_rows == 80 else 0.06)
    assert found.share_seen(data, sample_weight=np.arange(n_rows) % 2.0) == 1


def test_rows_of_earlier_fits_were_seen_too():
    first, second, third = (regression(50, seed) for seed in range(3))
    posterior = cv.models.linear_regression(3).fit(first).update(second)
    assert [posterior.share_seen(own) for own in (first, second, third)] == [1, 1, 0]
    old = cv.models.linear_regression(3).fit(first)
    old.row_marks = None
    assert np.isnan(old.share_seen(first))
    assert np.isnan(old.update(second).share_seen(second))


def test_labels_that_only_the_fit_was_given_do_not_make_other_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2)) + 4 * (np.arange(60) % 2)[:, None]
    y = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)
    mixture = cv.BayesianGaussianMixture(2, semi_supervised=True, random_state=0).fit(x, y=y)
    assert mixture.posterior_.share_seen({"x": x}) == 1
    assert not mixture.posterior_.is_fit_of({"x": x})


def test_missing_entries_and_sparse_rows_are_marked_as_what_they_are():
    sparse = pytest.importorskip("scipy.sparse")
    counts = np.random.default_rng(0).poisson(1.0, (30, 6))
    posterior = cv.LatentDirichletAllocation(2, random_state=0, max_iter=2, tol=1.0).fit(counts).posterior_
    assert posterior.share_seen({"word": sparse.csr_matrix(counts)}) == 1
    x = np.random.default_rng(0).normal(size=(40, 2))
    holes = x.copy()
    holes[::4, 0] = np.nan
    mixture = cv.models.gaussian_mixture(2, 1).fit({"x": holes})
    assert mixture.share_seen({"x": holes}) == 1
    assert mixture.share_seen({"x": x}) == pytest.approx(0.75)


def test_marks_are_bounded_and_hold_no_value(tmp_path):
    values = np.random.default_rng(0).normal(size=20_000)
    model = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 1), 1.0, plates=OBS))
    for n in (2_000, 20_000):
        model.fit({"x": values[:n]}).save(tmp_path / f"{n}.caviar")
    small, large = (tmp_path / f"{n}.caviar" for n in (2_000, 20_000))
    assert large.stat().st_size < small.stat().st_size + 100
    marks = cv.load(large).row_marks
    assert len(marks.marks) == 1024
    assert marks.marks.max() < 2**32
    bits = values.view(np.uint64)
    assert not np.isin(
        marks.marks, np.concatenate([bits, bits >> np.uint64(32), bits & np.uint64(2**32 - 1)])
    ).any()


@pytest.mark.parametrize(
    "document",
    [
        {"marks": np.array([3, 1]), "is_part": False},
        {"marks": np.array([-1, 1]), "is_part": False},
        {"marks": np.array([1, 2**40]), "is_part": False},
        {"marks": np.arange(2000), "is_part": False},
        {"marks": np.array([1.0, 2.0]), "is_part": False},
        {"marks": np.array([], dtype=np.int64), "is_part": False},
        {"marks": np.array([1]), "is_part": 1},
        {},
    ],
)
def test_made_up_marks_are_refused(document):
    with pytest.raises((ValueError, TypeError, LookupError)):
        RowMarks.of_plain(document)
