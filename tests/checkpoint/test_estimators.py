"""Mixtures under scikit-learn's contract go on from a checkpoint that is given to ``fit``."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import caviar as cv
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


def test_starts_that_are_given_have_a_file_each(tmp_path):
    fitted(cv.GaussianMixture(**KNOWN, init_params="random"), tmp_path / "c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "c.2"]


def test_in_a_pipeline_it_is_an_argument_of_a_step(tmp_path):
    pipeline = make_pipeline(StandardScaler(), cv.BayesianGaussianMixture(**KNOWN))
    pipeline.fit(X, bayesiangaussianmixture__checkpoint=tmp_path / "c")
    assert (tmp_path / "c").exists()


def test_a_path_is_no_parameter_that_clones_share():
    for kind in (cv.BayesianGaussianMixture, cv.GaussianMixture, cv.KnownVarianceMixture):
        assert "checkpoint" not in kind().get_params()
        assert inspect.signature(kind.fit).parameters["checkpoint"].default is None


def test_what_cannot_go_on_is_refused_in_words(tmp_path):
    with pytest.raises(cv.ParameterError, match="needs a random_state"):
        cv.GaussianMixture(2).fit(X, checkpoint=tmp_path / "c")
    with pytest.raises(cv.ParameterError, match="give a number of components"):
        cv.BayesianGaussianMixture("auto", random_state=0).fit(X, checkpoint=tmp_path / "c")
    fitted(ESTIMATORS[0], tmp_path / "c")
    with pytest.raises(cv.CheckpointError, match="its data was another"):
        fitted(ESTIMATORS[0], tmp_path / "c", X=X[1:])


def test_an_interruption_ends_all_starts(tmp_path):
    def interrupt(event):
        raise KeyboardInterrupt

    found = fitted(cv.GaussianMixture(**KNOWN, init_params="random"), tmp_path / "c", callback=interrupt)
    assert found.posterior_.status.value == "interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
