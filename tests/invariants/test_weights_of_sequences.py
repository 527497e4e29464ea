"""A sequence of weight 2 is the sequence twice: in bound, updates and linear response; one of weight 0 is left out."""

import numpy as np
import pytest
from starts.test_basis import made_from

import caviar as cv
from caviar.engine.local.chains.steps import Steps

LENGTHS = np.array([12, 1, 25, 9])
WEIGHTS = np.array([2.0, 3.0, 1.0, 0.0])


def data_of(lengths, x):
    starts = np.zeros(int(np.sum(lengths)))
    starts[np.cumsum(lengths) - lengths] = 1
    return {"x": x, "starts": starts}


def sequences():
    rng = np.random.default_rng(0)
    path = np.arange(LENGTHS.sum()) // 6 % 2
    x = rng.normal(3.0 * path[:, None], 1.0)
    x[[3, 30]] = np.nan
    return x, path


def both(schedule="batch", **arguments):
    """Return the fit to weighted sequences, and the one to repeated ones, from the same states."""
    x, path = sequences()
    model = cv.models.gaussian_hidden_markov_model(1, 2, with_starts=True)
    parts = np.split(np.arange(len(x)), np.cumsum(LENGTHS)[:-1])
    repeated = [part for part, n in zip(parts, WEIGHTS.astype(int), strict=True) for _ in range(n)]
    places = np.concatenate(repeated)
    same = {"seed": 0, "schedule": schedule, "tol": 1e-13, "max_iter": 2000, **arguments}
    weights = np.repeat(WEIGHTS, LENGTHS)
    one = model.fit(data_of(LENGTHS, x), sample_weight=weights, init={"s": path}, **same)
    other = model.fit(data_of([len(part) for part in repeated], x[places]), init={"s": path[places]}, **same)
    return one, other, (data_of(LENGTHS, x), weights)


@pytest.mark.parametrize("schedule", ["batch", "incremental"])
def test_weights_are_repetitions(schedule):
    one, other, (data, weights) = both(schedule)
    assert one.elbo == pytest.approx(other.elbo, abs=1e-7)
    for name in ("initial", "transition", "mean", "precision"):
        np.testing.assert_allclose(one[name].mean, other[name].mean, rtol=1e-5)
    assert np.all(np.diff(one.elbo_trace) > -1e-9)
    assert one.elbo_at({}, data, sample_weight=weights) == pytest.approx(one.elbo, abs=1e-7)


def test_standard_deviations_of_linear_response_are_those_of_repetitions():
    one, other, _ = both(uncertainty="linear_response")
    for name in ("initial", "transition", "mean"):
        np.testing.assert_allclose(one.sd(name), other.sd(name), rtol=1e-5)


def test_messages_that_underflow_count_the_weights_too():
    """Rows a hundred standard deviations apart take the smoother to logarithms."""
    from caviar.families.chains.markov_chain import smooth

    logits = np.array([[0.0, -800.0], [-900.0, 0.0], [0.0, -800.0], [0.0, -1.0]])
    starts = np.array([1, 0, 0, 1])
    logs = np.log([0.5, 0.5]), np.log([[1 - 1e-12, 1e-12], [1e-300, 1.0]])
    weights = np.array([2.0, 2.0, 2.0, 1.0])
    one = smooth(logits, starts, *logs, weights=weights)
    other = smooth(np.vstack([logits[:3], logits]), np.append([1, 0, 0], starts), *logs)
    assert one.log_partition == pytest.approx(other.log_partition)
    np.testing.assert_allclose(one.pairs, other.pairs, atol=1e-12)
    np.testing.assert_allclose(one.first, other.first)
    assert one.entropy == pytest.approx(other.entropy, abs=1e-9)


@pytest.mark.thinned(3)
@pytest.mark.filterwarnings("ignore::caviar.ConvergenceWarning")
@pytest.mark.parametrize("own", [{}, {"emission": "poisson"}, {"n_init": 2, "n_components": 4}])
def test_fits_begin_where_those_to_repeated_sequences_do(own):
    """Starts merge equal sequences: with unweighted counts these fits ended up to 276 nats apart."""
    rng = np.random.default_rng(1)
    lengths, weights = np.array([30, 20, 30, 25]), np.array([1, 3, 2, 0])
    rates = 1.0 + 3.0 * (np.arange(lengths.sum()) // 7 % 3)
    x = rng.poisson(rates)[:, None] if own.get("emission") else rng.normal(rates[:, None] * [1, -1], 1.0)
    parts = np.split(x, np.cumsum(lengths)[:-1])
    # copies of a sequence need not follow it
    order = [0, 1, 2, 1, 2, 1]
    model = cv.HiddenMarkovModel(**{"n_components": 3, "max_iter": 2, "random_state": 0, **own})
    one = model.fit(x, lengths=lengths, sequence_weight=weights).elbo_
    other = model.fit(np.concatenate([parts[i] for i in order]), lengths=lengths[order]).elbo_
    assert one == pytest.approx(other, rel=1e-12)


def test_given_states_of_a_sequence_of_weight_two_are_those_of_two_sequences():
    """Sums of states that a start gives; the first rows of an unequal sequence differ from those that follow."""
    (chain,) = made_from(
        cv.models.gaussian_hidden_markov_model(1, 2), {"x": np.zeros((4, 1))}
    ).problem.factors
    first, second = np.array([[0.9, 0.2, 0.4], [0.1, 0.8, 0.6]]), np.array([[0.3, 0.5], [0.7, 0.5]])
    starts, weights = np.array([1, 0, 0, 1, 0], dtype=bool), np.array([2.0, 2.0, 2.0, 3.0, 3.0])
    one = chain.sums_given(np.hstack([first, second]), Steps(starts, weights=weights))
    repeated = np.hstack([first] * 2 + [second] * 3)
    other = chain.sums_given(repeated, Steps(np.array([1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0], dtype=bool)))
    assert one.keys() == other.keys()
    for key, own in one.items():
        np.testing.assert_allclose(own, other[key], rtol=1e-12)


def test_equal_sequences_are_one_in_the_sample():
    """Each where it comes first, with the weight of all; rows that are equal in another order are another sequence."""
    from caviar.data import ArrayRows
    from caviar.engine.design.keys import ColumnKey
    from caviar.engine.starts.clustering.sequences import in_order

    class Starts:
        column = ColumnKey("starts")

        def among(self, columns, n_rows):
            return columns[self.column] > 0

    class Chain:
        starts = Starts()

    x = np.array([1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 7.0, 5.0, 1.0, 2.0])
    starts = np.array([0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    weights = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 4.0, 0.0, 3.0, 3.0])
    rows = ArrayRows({ColumnKey("x"): x, ColumnKey("starts"): starts}, len(x), weights)
    sample = in_order(rows, [Chain()])
    np.testing.assert_array_equal(sample.columns[ColumnKey("x")], [1, 2, 2, 1, 7])
    # the first row begins a sequence whether or not it is said to
    np.testing.assert_array_equal(sample.row_weights, [6, 6, 1, 1, 4])


def test_what_is_refused():
    x, _ = sequences()
    weights = np.ones(len(x))
    weights[5] = 2
    model = cv.models.gaussian_hidden_markov_model(1, 2, with_starts=True)
    with pytest.raises(
        cv.DataError, match="the same in all rows of a sequence of MarkovChain 's': row 5 has 2"
    ):
        model.fit(data_of(LENGTHS, x), sample_weight=weights)


def test_the_estimator_weighs_sequences():
    x, _ = sequences()
    one = cv.HiddenMarkovModel(
        2, random_state=0, tol=1e-12, covariance_prior=np.eye(1), mean_precision_prior=0.1
    )
    one.set_params(mean_prior=[0.0], degrees_of_freedom_prior=2.0)
    kept = slice(0, int(LENGTHS[:3].sum()))
    weighted = one.fit(x, lengths=LENGTHS, sequence_weight=[1, 1, 1, 0]).elbo_
    assert weighted == pytest.approx(one.fit(x[kept], lengths=LENGTHS[:3]).elbo_, abs=1e-6)
    for wrong in ([1, 1, 1], [1, 1, 1, -1], [0, 0, 0, 0]):
        with pytest.raises(cv.ParameterError, match="sequence_weight"):
            one.fit(x, lengths=LENGTHS, sequence_weight=wrong)
