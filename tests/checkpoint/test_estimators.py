"""Mixtures under scikit-learn's contract go on from a checkpoint that is given to ``fit``."""

import functools
import inspect
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import caviar as cv
from caviar.estimators.automatic.problem import Problem
from caviar.fitting import checkpointing
from checkpoint.comparing import Broken, after, assert_same_bits, broken_off_until_done

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 2)) + RNG.integers(0, 3, (500, 1)) * [1.5, -1.0]
KNOWN = {"n_components": 3, "tol": 0.0, "max_iter": 9, "n_init": 2, "random_state": 0}

ESTIMATORS = [
    cv.BayesianGaussianMixture(**KNOWN),
    cv.BayesianGaussianMixture(
        **KNOWN, covariance_type="tied", weight_concentration_prior_type="dirichlet_process"
    ),
    cv.GaussianMixture(**KNOWN, covariance_type="diag"),
    cv.GaussianMixture(**KNOWN, init_params="random"),
]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(estimator, path=None, every=0.0, X=X, callback=False):
    own = clone(estimator).set_params(verbose=callback)
    return own.fit(X, checkpoint=path, checkpoint_every=every)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_mixture_goes_on_to_the_same_bits(estimator, tmp_path):
    undisturbed = fitted(estimator)
    found, n_breaks = broken_off_until_done(
        lambda **arguments: fitted(estimator, tmp_path / "c", **arguments),
        [{"callback": after(1)} for _ in range(40)],
    )
    assert n_breaks >= 10
    assert_same_bits(found.posterior_, undisturbed.posterior_)
    np.testing.assert_array_equal(found.score_samples(X), undisturbed.score_samples(X))
    np.testing.assert_array_equal(found.sample(5)[0], undisturbed.sample(5)[0])


def test_one_column_with_known_variance(tmp_path):
    estimator = cv.KnownVarianceMixture(2, tol=0.0, max_iter=9, random_state=0)
    undisturbed = fitted(estimator, X=X[:, :1])
    with pytest.raises(Broken):
        fitted(estimator, tmp_path / "c", X=X[:, :1], callback=after(4))
    found = fitted(estimator, tmp_path / "c", X=X[:, :1])
    assert_same_bits(found.posterior_, undisturbed.posterior_)


ROWS = np.concatenate([X[:40], X[:20] + 9.0])
AUTO = {"tol": 1e-5, "max_iter": 60, "random_state": 0}
SEARCHES = {
    "one start": cv.BayesianGaussianMixture("auto", **AUTO),
    "two starts": cv.BayesianGaussianMixture("auto", **AUTO, covariance_type="diag", n_init=2),
    "from labels": cv.BayesianGaussianMixture("auto", **AUTO, init_params=np.arange(60) % 4),
}


@functools.cache
def pickled_search(name):
    return pickle.dumps(fitted(SEARCHES[name], X=ROWS))


def whole_search(name):
    """Return the end of a search that nobody broke off, for each test anew: draws move its generator on."""
    return pickle.loads(pickled_search(name))


def assert_same_search(one, other):
    assert one.moves_ == other.moves_
    assert_same_bits(one.posterior_, other.posterior_)
    np.testing.assert_array_equal(one.sample(5)[0], other.sample(5)[0])


@pytest.mark.slow
@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", list(SEARCHES))
def test_a_search_for_the_number_of_components_goes_on_to_the_same_bits(name, tmp_path, caplog):
    """It is broken off after more and more iterations, and ends with the same moves."""
    rows = ROWS
    undisturbed = whole_search(name)
    assert len(undisturbed.moves_) > 3
    found, n_breaks = broken_off_until_done(
        lambda **arguments: fitted(SEARCHES[name], tmp_path / "c", X=rows, **arguments),
        [{"callback": after(n)} for n in (1, 2, 1, 3, 2, 5, 2, 9)],
    )
    assert n_breaks >= 3
    assert_same_search(found, undisturbed)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    # what has ended is not made again, and told once
    with caplog.at_level("INFO", logger="caviar.checkpoint"):
        fitted(SEARCHES[name], tmp_path / "c", X=rows, callback=after(1))
    (told,) = [record.getMessage() for record in caplog.records if record.name == "caviar.checkpoint"]
    assert told.endswith(": this fit has ended; its result is taken from there")


def interrupting(n_iterations):
    told = []

    def callback(event):
        told.append(event)
        if len(told) == n_iterations:
            raise KeyboardInterrupt

    return callback


@pytest.mark.slow
@pytest.mark.parametrize("n_iterations", [1, 9])
def test_an_interrupted_search_goes_on_to_the_same_bits(n_iterations, tmp_path):
    """Ctrl-C gives the best so far, and ends all searches."""
    search, rows = SEARCHES["two starts"], ROWS
    undisturbed = whole_search("two starts")
    sofar = fitted(search, tmp_path / "c", every=60.0, X=rows, callback=interrupting(n_iterations))
    assert sofar.posterior_.status.value == "interrupted"
    assert_same_search(fitted(search, tmp_path / "c", X=rows), undisturbed)


@pytest.mark.slow
def test_an_interrupt_between_iterations_of_all_rows_ends_a_search(tmp_path, monkeypatch):
    """Ctrl-C in a fit to the rows of one component ends the search: with that end it would be another one."""
    search, rows = SEARCHES["one start"], ROWS
    undisturbed = whole_search("one start")
    real, calls = Problem.part, []

    def part(own, *arguments, **changes):
        calls.append(own)
        found = real(own, *arguments, **changes)
        return replace(found, progress=interrupting(2)) if len(calls) == 2 else found

    monkeypatch.setattr(Problem, "part", part)
    sofar = fitted(search, tmp_path / "c", X=rows)
    assert len(calls) == 2
    assert sofar.posterior_.status.value == "interrupted"
    monkeypatch.undo()
    assert_same_search(fitted(search, tmp_path / "c", X=rows), undisturbed)


COUNTS = np.random.default_rng(3).poisson(1.0, (40, 12))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["batch", "incremental", "online"])
def test_topics_go_on_to_the_same_bits(method, tmp_path):
    known = {"learning_method": method, "n_init": 2, "max_iter": 6, "tol": 0.0, "random_state": 0}
    estimator = cv.LatentDirichletAllocation(3, **known, batch_size=8)
    undisturbed = fitted(estimator, X=COUNTS)
    found, n_breaks = broken_off_until_done(
        lambda **arguments: fitted(estimator, tmp_path / "c", X=COUNTS, **arguments),
        [{"callback": after(1)} for _ in range(20)],
    )
    assert n_breaks >= 5
    assert_same_bits(found.posterior_, undisturbed.posterior_)
    np.testing.assert_array_equal(found.transform(COUNTS), undisturbed.transform(COUNTS))
    with pytest.raises(cv.ParameterError, match="needs a fixed seed"):
        cv.LatentDirichletAllocation(2).fit(COUNTS, checkpoint=tmp_path / "d")


@pytest.mark.slow
def test_a_comparison_goes_on_to_the_same_table(tmp_path):
    def compared(path=None, callback=False, numbers=(2, "auto")):
        known = {"n_init": 1, "held_out": 0.2, "random_state": 0, "max_iter": 10, "tol": 1e-4}
        return cv.compare_mixtures(
            ROWS,
            numbers,
            "full",
            **known,
            verbose=callback,
            checkpoint=path,
            checkpoint_every=0.0,
        )

    undisturbed = compared()
    found, n_breaks = broken_off_until_done(
        lambda **arguments: compared(tmp_path / "c", **arguments),
        [{"callback": after(n)} for n in (1, 4, 8)],
    )
    assert n_breaks >= 2
    for mine, theirs in zip(found.rows, undisturbed.rows, strict=True):
        assert replace(mine, seconds=0.0) == replace(theirs, seconds=0.0)
    assert_same_bits(found.best.posterior_, undisturbed.best.posterior_)
    events = []
    compared(callback=events.append, numbers=(2,))
    partial = compared(tmp_path / "d", callback=interrupting(len(events) + 1))
    assert len(partial.rows) == 1
    again = compared(tmp_path / "d")
    assert [row.elbo for row in again.rows] == [row.elbo for row in undisturbed.rows]
    with pytest.raises(cv.ParameterError, match="needs a fixed seed"):
        cv.compare_mixtures(X, 2, "full", checkpoint=tmp_path / "e")


def test_starts_that_are_given_share_a_file(tmp_path):
    fitted(cv.GaussianMixture(**KNOWN, init_params="random"), tmp_path / "c")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


@pytest.mark.slow
def test_a_checkpoint_of_one_fit_is_none_of_several(tmp_path):
    model = cv.models.normal_wishart_mixture(2, 2)
    model.fit({"x": X}, seed=0, max_iter=2, checkpoint=tmp_path / "one")
    with pytest.raises(cv.CheckpointError, match="the checkpoint of one fit"):
        fitted(ESTIMATORS[0], tmp_path / "one")
    fitted(ESTIMATORS[0], tmp_path / "several")
    with pytest.raises(cv.CheckpointError, match="a checkpoint of several fits"):
        model.fit({"x": X}, seed=0, max_iter=2, checkpoint=tmp_path / "several")


@pytest.mark.slow
def test_other_kernels_are_told_and_the_fit_goes_on(tmp_path, monkeypatch):
    """A fit that goes on where matrix products end in other digits says so."""
    undisturbed = fitted(ESTIMATORS[0])
    with pytest.raises(Broken):
        fitted(ESTIMATORS[0], tmp_path / "c", callback=after(4))
    mine = checkpointing.arithmetic()
    monkeypatch.setattr(checkpointing, "arithmetic", lambda: {**mine, "BLAS": "openblas 0.3.30 Haswell"})
    told = rf"began with BLAS {mine['BLAS']}.*now has BLAS openblas 0.3.30 Haswell.*last digits may differ"
    with pytest.warns(cv.CheckpointWarning, match=told):
        found = fitted(ESTIMATORS[0], tmp_path / "c")
    assert_same_bits(found.posterior_, undisturbed.posterior_)


@pytest.mark.slow
def test_in_a_pipeline_it_is_an_argument_of_a_step(tmp_path):
    pipeline = make_pipeline(StandardScaler(), cv.BayesianGaussianMixture(**KNOWN))
    pipeline.fit(X, bayesiangaussianmixture__checkpoint=tmp_path / "c")
    assert (tmp_path / "c").exists()


def test_a_path_is_no_parameter_that_clones_share():
    for kind in (cv.BayesianGaussianMixture, cv.GaussianMixture, cv.KnownVarianceMixture):
        assert "checkpoint" not in kind().get_params()
        assert inspect.signature(kind.fit).parameters["checkpoint"].default is None


@pytest.mark.slow
def test_what_cannot_go_on_is_refused_in_words(tmp_path):
    with pytest.raises(cv.ParameterError, match="needs a fixed seed"):
        cv.GaussianMixture(2).fit(X, checkpoint=tmp_path / "c")
    fitted(ESTIMATORS[0], tmp_path / "c")
    with pytest.raises(cv.CheckpointError, match="its data differ"):
        fitted(ESTIMATORS[0], tmp_path / "c", X=X[1:])


def test_an_interruption_ends_all_starts(tmp_path):
    def interrupt(event):
        raise KeyboardInterrupt

    found = fitted(cv.GaussianMixture(**KNOWN, init_params="random"), tmp_path / "c", callback=interrupt)
    assert found.posterior_.status.value == "interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
