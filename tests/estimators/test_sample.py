"""``sample`` is reproducible, and repeats itself only when it is asked to."""

import pickle

import numpy as np
import pytest

import caviar as cv

pytestmark = pytest.mark.first_guess

FAITHFUL = cv.datasets.load_faithful().values


@pytest.fixture
def mixture():
    return cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL)


def test_calls_do_not_repeat_each_other(mixture):
    first, second = mixture.sample(3)[0], mixture.sample(3)[0]
    assert not np.any(first == second)


def test_the_estimators_random_state_fixes_the_whole_sequence(mixture):
    drawn = [mixture.sample(3)[0] for _ in range(3)]
    again = cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL)
    np.testing.assert_array_equal(drawn, [again.sample(3)[0] for _ in range(3)])


def test_a_random_state_of_the_call_repeats_the_call_and_leaves_the_sequence_alone(mixture):
    one, labels = mixture.sample(4, random_state=7)
    again, same_labels = mixture.sample(4, random_state=7)
    np.testing.assert_array_equal(one, again)
    np.testing.assert_array_equal(labels, same_labels)
    fresh = cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL)
    np.testing.assert_array_equal(mixture.sample(4)[0], fresh.sample(4)[0])


@pytest.mark.usefixtures("figures_of_factors")
def test_a_pickled_estimator_goes_on_where_it_was(mixture):
    mixture.sample(5)
    copy = pickle.loads(pickle.dumps(mixture))
    np.testing.assert_array_equal(copy.sample(5)[0], mixture.sample(5)[0])


def test_without_a_random_state_two_fits_draw_differently():
    one, other = (cv.BayesianGaussianMixture(1).fit(FAITHFUL).sample(2)[0] for _ in range(2))
    assert not np.any(one == other)


def test_shapes_and_refusals(mixture):
    rows, labels = mixture.sample()
    assert rows.shape == (1, 2)
    assert labels.shape == (1,)
    for n in (0, -1, 2.5, None):
        with pytest.raises(cv.ParameterError, match="n_samples"):
            mixture.sample(n)


def test_one_dimensional_samples_fit_back_into_every_method():
    mixture = cv.KnownVarianceMixture(2, random_state=0).fit([0.0, 1.0, 9.0, 10.0])
    rows, _ = mixture.sample(6)
    assert rows.shape == (6, 1)
    assert mixture.score_samples(rows).shape == mixture.predict(rows[:, 0]).shape == (6,)
