"""Starts that run side by side end where each ends by itself; those that cannot be a batch run by themselves."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine.groups import side_by_side
from caviar.engine.groups.rows import GroupedRows
from caviar.engine.groups.side_by_side import SideBySide
from caviar.engine.starts.race import Runs


def _mixture(rng):
    x = rng.normal(size=(90, 2)) + 3 * rng.integers(3, size=(90, 1))
    return cv.models.gaussian_mixture(2, 3), {"x": x}


def _grid(rng):
    """A label of a grid for each cluster and sample, as PyClone-VI has it."""
    row, cluster, sample = cv.Plate("row"), cv.Plate("cluster", 4), cv.Plate("sample", 2)
    place = cv.Categorical("place", np.full(9, 1 / 9), plates=(cluster, sample))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(4)), plates=row)
    model = cv.Model(cv.Potential("table", place[z], plates=(row, sample)))
    centres = rng.integers(9, size=(4, 2))[rng.integers(4, size=40)]
    return model, {"table": -np.abs(np.arange(9) - centres[..., None]) + rng.normal(size=(40, 2, 9))}


def _classes(rng):
    return cv.models.bernoulli_mixture(5, 3), {"x": rng.integers(2, size=(60, 5))}


def _means_far_off(rng):
    """Reference points are means of the data, which are far from the origin."""
    model, data = _mixture(rng)
    return model, {"x": data["x"] + 100.0}


def _counts(rng):
    row, k = cv.Plate("row"), cv.Plate("k", 3)
    rate = cv.Gamma("rate", 1, 0.1, plates=k)
    z = cv.Categorical("z", cv.Dirichlet("p", np.ones(3)), plates=row)
    return cv.Model(cv.Poisson("n", rate[z], plates=row)), {
        "n": rng.poisson(np.array([1.0, 6.0, 20.0])[rng.integers(3, size=80)])
    }


def _known_variances(rng):
    """A variance for each column: sums over the rows that nothing hidden enters, by column."""
    x = rng.normal(size=(70, 3)) + 3 * rng.integers(3, size=(70, 1))
    return cv.models.unit_variance_mixture(3, 3, variance=[1.0, 0.5, 2.0]), {"x": x}


def _stated_size(rng):
    """The number of rows is part of the model."""
    row, column, k = cv.Plate("row", 60), cv.Plate("column", 2), cv.Plate("k", 3)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=row)
    mean = cv.Normal("mean", 0.0, 0.1, plates=(k, column))
    model = cv.Model(cv.Normal("x", mean[z], cv.Gamma("t", 1, 1), plates=(row, column)))
    return model, {"x": rng.normal(size=(60, 2)) + 3 * rng.integers(3, size=(60, 1))}


def _stated_trials(rng):
    """Tallies of a number of trials that the statement has for each row."""
    x = rng.multinomial(rng.integers(1, 7, 40), [0.2, 0.3, 0.5])
    table = cv.Dirichlet("table", np.ones(3), plates=cv.Plate("label", 2))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=cv.Plate("obs"))
    return cv.Model(cv.Multinomial("x", x.sum(axis=1), table[z], plates=z.plates)), {"x": x}


def _missing_entries(rng):
    """Columns that are independent within a component, some entries of which are missing."""
    model, data = _classes(rng)
    return model, {"x": np.where(rng.random(data["x"].shape) < 0.1, np.nan, data["x"])}


def _rows_along_the_second_plate(rng):
    """The longer plate has the rows, and the labels are of the other."""
    short, long, k = cv.Plate("short", 9), cv.Plate("long", 20), cv.Plate("k", 3)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=short)
    mean = cv.Normal("mean", 0.0, 0.1, plates=k)
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=(short, long)))
    return model, {"x": rng.normal(size=(9, 20)) + rng.integers(3, size=(9, 1))}


MODELS = [
    _known_variances,
    _mixture,
    _grid,
    _classes,
    _means_far_off,
    _counts,
    _stated_size,
    _stated_trials,
    _missing_entries,
    _rows_along_the_second_plate,
]


@pytest.fixture
def batches(monkeypatch):
    """Yield the batches that are made; setting ``allowed`` to False lets all starts run by themselves."""
    made, of = [], SideBySide.of

    def spied(*arguments, **named):
        found = of(*arguments, **named) if spied.allowed else None
        if found is not None:
            made.append(found)
        return found

    spied.allowed, spied.made = True, made
    monkeypatch.setattr(SideBySide, "of", spied)
    return spied


def _both(batches, fit):
    """Return the fit by batches, how many there were, and the fit without them."""
    together = fit()
    n_batches, batches.allowed = len(batches.made), False
    return together, n_batches, fit()


@pytest.mark.parametrize(("n_numbers", "n_batches"), [(5 * 90 * 3 - 1, 0), (6 * 90 * 3, 1)])
def test_starts_with_more_numbers_than_fit_run_by_themselves(n_numbers, n_batches, batches, monkeypatch):
    """A probability of each label of each row in each start."""
    monkeypatch.setattr(side_by_side, "_MOST_NUMBERS", n_numbers)
    model, data = _mixture(np.random.default_rng(3))
    model.fit(data, init="prior", n_restarts=5, seed=4, max_iter=1, uncertainty="mean_field")
    assert len(batches.made) == n_batches


@pytest.mark.thinned(8)
@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("make", MODELS)
def test_each_start_ends_where_it_ends_by_itself(make, accelerate, batches):
    model, data = make(np.random.default_rng(3))
    settings = {
        "init": "prior",
        "n_restarts": 5,
        "tol": 1e-12,
        "seed": 4,
        "max_iter": 3000,
        "accelerate": accelerate,
    }
    together, n_batches, alone = _both(batches, lambda: model.fit(data, **settings))
    assert n_batches == 1
    np.testing.assert_allclose(together.restart_elbos, alone.restart_elbos, rtol=1e-8)
    assert together.elbo == pytest.approx(alone.elbo, rel=1e-10)
    assert together.elbo == max(together.restart_elbos)


@pytest.mark.parametrize("accelerate", [True, False])
def test_rows_of_ended_starts_are_looked_at_no_further(accelerate, batches, monkeypatch):
    model, data = _grid(np.random.default_rng(3))
    looked_at, look = [], GroupedRows.look
    monkeypatch.setattr(
        GroupedRows,
        "look",
        lambda self, own, groups=None: looked_at.append(len(own)) or look(self, own, groups),
    )
    model.fit(data, init="prior", n_restarts=5, tol=1e-8, seed=4, max_iter=300, accelerate=accelerate)
    ends = batches.made[0].ends
    made = ends.n_iter.tolist()
    assert len(set(made)) > 1
    if not accelerate:
        # a look at the start, and one for each iteration of each
        assert sum(looked_at) == len(made) + sum(made)
    else:
        assert looked_at[-1] < len(made)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", MODELS)
def test_plain_iterations_are_those_of_a_fit_by_itself(make, weighted, batches):
    rng = np.random.default_rng(5)
    model, data = make(rng)
    n_rows = 20 if make is _rows_along_the_second_plate else len(next(iter(data.values())))
    weights = rng.integers(1, 4, n_rows) if weighted else None
    settings = {"tol": 0.0, "seed": 6, "max_iter": 7, "accelerate": False, "sample_weight": weights}
    together, n_batches, alone = _both(
        batches, lambda: model.fit(data, init="prior", n_restarts=3, **settings)
    )
    assert n_batches == 1
    assert len(together.restart_traces) == len(alone.restart_traces) == 3
    for one, other in zip(together.restart_traces, alone.restart_traces, strict=True):
        # a draw in the place of a factor has no objective yet
        np.testing.assert_allclose(one[1:], other[1:], rtol=1e-11)
    assert together.status is alone.status


def _with_missing(data, rng):
    x = data["x"].astype(float)
    x[rng.random(x.shape) < 0.1] = np.nan
    return {"x": x}


def _leaves_of_known_parents():
    """Counts whose rate is the same in all components, and values with a known mean."""
    row, k = cv.Plate("row"), cv.Plate("k", 3)
    z = cv.Categorical("z", cv.Dirichlet("p", np.ones(3)), plates=row)
    x = cv.Normal("x", cv.Normal("mean", 0.0, 0.01, plates=k)[z], 1.0, plates=row)
    n = cv.Poisson("n", cv.Constant("rate", np.full(3, 2.0), plates=k)[z], plates=row)
    return x, n, cv.Normal("noise", 0.0, 1.0, plates=row)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("number", [1, 2])
def test_a_leaf_of_known_parents_alone_is_no_part_of_a_batch(number, batches):
    rng = np.random.default_rng(3)
    x, *others = _leaves_of_known_parents()
    data = {"x": rng.normal(size=40) + 4 * rng.integers(3, size=40), "n": rng.poisson(2.0, 40)}
    data["noise"] = rng.normal(size=40)
    leaf = others[number - 1]
    model, own = cv.Model(x, leaf), {name: data[name] for name in ("x", leaf.name)}
    together, n_batches, alone = _both(batches, lambda: model.fit(own, n_restarts=4, seed=0))
    assert n_batches == 0
    assert together.elbo == alone.elbo
    many = cv.fit_many(model, [own] * 4)
    np.testing.assert_allclose([each.elbo for each in many], together.elbo, rtol=1e-6)


def _several_answers(rng):
    """Answers at two places, whose probabilities are the same."""
    obs, label = cv.Plate("obs"), cv.Plate("label", 2)
    table = cv.Dirichlet("table", np.full(5, 0.5), plates=label)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    model = cv.Model(cv.Categorical("x", table[z], plates=(obs, cv.Plate("place", 2))))
    return model, {"x": rng.integers(5, size=(8, 2))}


def test_answers_at_several_places_are_fitted_one_by_one(batches):
    model, data = _several_answers(np.random.default_rng(1))
    together, n_batches, alone = _both(batches, lambda: model.fit(data, n_restarts=3, seed=0))
    assert n_batches == 0
    assert together.restart_elbos.tolist() == alone.restart_elbos.tolist()


@pytest.mark.parametrize("refused", ["missing entries", "an earlier posterior"])
def test_what_cannot_be_a_batch_is_fitted_one_by_one(refused, batches):
    rng = np.random.default_rng(7)
    model, data = _mixture(rng)
    prior = None
    if refused == "missing entries":
        data = _with_missing(data, rng)
    else:
        prior = model.fit(data, seed=0, max_iter=3)
        batches.made.clear()
    settings = {"init": "prior", "n_restarts": 3, "seed": 8, "max_iter": 10, "prior": prior}
    together, n_batches, alone = _both(batches, lambda: model.fit(data, **settings))
    assert n_batches == 0
    assert together.restart_elbos.tolist() == alone.restart_elbos.tolist()


def test_a_start_that_loses_digits_in_the_batch_goes_on_by_itself(batches):
    rng = np.random.default_rng(9)
    x = np.concatenate(
        [rng.normal(0, 1e-4, (40, 1)), rng.normal(1e4, 1e-4, (40, 1)), rng.normal(0, 1e4, (40, 1))]
    )
    model = cv.models.normal_wishart_mixture(1, 3)
    settings = {"init": "prior", "n_restarts": 4, "seed": 1, "tol": 1e-10, "max_iter": 2000}
    together, n_batches, alone = _both(batches, lambda: model.fit({"x": x}, **settings))
    assert n_batches == 1
    assert any(batches.made[0].has_left(place) for place in range(4))
    np.testing.assert_allclose(together.restart_elbos, alone.restart_elbos, rtol=1e-7)


@pytest.mark.parametrize("estimator", [cv.BayesianGaussianMixture, cv.GaussianMixture])
def test_a_race_has_the_same_winner(estimator, batches):
    rng = np.random.default_rng(10)
    x = rng.normal(size=(150, 2)) * [1, 0.3] + 1.5 * rng.integers(4, size=(150, 1))
    fit = lambda: estimator(4, random_state=0, tol=1e-9).fit(x).posterior_  # noqa: E731
    together, n_batches, alone = _both(batches, fit)
    assert n_batches > 0
    assert together.elbo == pytest.approx(alone.elbo, rel=1e-7)


def test_a_start_of_a_race_that_leaves_the_batch_runs_by_itself(batches, monkeypatch):
    rng = np.random.default_rng(10)
    x = rng.normal(size=(150, 2)) * [1, 0.3] + 2 * rng.integers(4, size=(150, 1))
    monkeypatch.setattr(SideBySide, "has_left", lambda self, place: True)
    ran = []
    monkeypatch.setattr(Runs, "reached", lambda self, runner: ran.append(self._alone) or runner)
    together, n_batches, alone = _both(
        batches, lambda: cv.BayesianGaussianMixture(4, random_state=0).fit(x).posterior_
    )
    assert n_batches > 0
    assert ran
    assert together.elbo == pytest.approx(alone.elbo, rel=1e-6)


def test_threads_and_groups_of_threads_make_no_difference():
    model, data = _grid(np.random.default_rng(11))
    own = [model.fit(data, init="prior", n_restarts=4, seed=1, executor=n).restart_elbos for n in (1, 2)]
    assert own[0].tolist() == own[1].tolist()


def test_each_iteration_of_each_start_is_told_and_may_be_the_last():
    model, data = _grid(np.random.default_rng(12))
    told = []

    def tell(event):
        told.append((event.restart, event.iteration))
        return event.restart == 1 and event.iteration == 2

    posterior = model.fit(data, init="prior", n_restarts=3, seed=1, progress=tell)
    assert {restart for restart, _ in told} == {0, 1, 2}
    assert [own for own in told if own[0] == 1][-1] == (1, 2)
    assert len(posterior.restart_traces[1]) == 3
    for restart in (0, 2):
        numbers = [n for own, n in told if own == restart]
        assert numbers[:2] == [1, 2]
        assert numbers == sorted(set(numbers))
        assert len(posterior.restart_traces[restart]) - 1 - numbers[-1] in (0, 1)


def test_all_starts_may_be_ended_at_once():
    model, data = _grid(np.random.default_rng(12))
    posterior = model.fit(
        data, init="prior", n_restarts=3, seed=1, progress=lambda event: event.iteration == 2
    )
    assert [len(own) for own in posterior.restart_traces[1:]] == [3, 3]


def test_an_interruption_leaves_the_best_so_far():
    model, data = _grid(np.random.default_rng(13))

    def tell(event):
        if event.iteration == 3:
            raise KeyboardInterrupt

    posterior = model.fit(data, init="prior", n_restarts=3, seed=1, tol=0.0, progress=tell)
    assert posterior.status.value == "interrupted"
    assert np.isfinite(posterior.elbo)
