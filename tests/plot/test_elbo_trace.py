"""Every start has its line, and the gap is that to the best end."""

import numpy as np

import caviar as cv
from plot.fits import FAITHFUL, faithful, restarted


def test_each_start_has_its_line():
    posterior = restarted()
    assert len(posterior.restart_traces) == 4
    np.testing.assert_array_equal([trace[-1] for trace in posterior.restart_traces], posterior.restart_elbos)
    ax = cv.plot.elbo_trace(posterior, gap=False)
    drawn = {tuple(line.get_ydata()) for line in ax.lines}
    assert drawn == {tuple(trace) for trace in posterior.restart_traces}
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), posterior.elbo_trace)


def test_the_gap_is_what_is_missing_to_the_best_end():
    ax = cv.plot.elbo_trace(restarted())
    assert ax.get_yscale() == "log"
    iterations, below = ax.lines[-1].get_data()
    trace = restarted().elbo_trace
    expected = trace[-1] - trace
    np.testing.assert_array_equal(below, expected[expected > 0])
    np.testing.assert_array_equal(iterations, np.flatnonzero(expected > 0))
    assert all(np.all(line.get_ydata() > 0) for line in ax.lines)


def test_a_saved_fit_has_the_same_picture(tmp_path):
    faithful().save(tmp_path / "model.caviar")
    opened = cv.load(tmp_path / "model.caviar")
    (line,) = cv.plot.elbo_trace(opened, gap=False).lines
    np.testing.assert_array_equal(line.get_ydata(), faithful().elbo_trace_)


def test_likelihoods_are_no_bounds():
    mixture = cv.GaussianMixture(2, random_state=0).fit(FAITHFUL)
    assert cv.plot.elbo_trace(mixture).get_title().startswith("Objective by iteration")
    assert cv.plot.elbo_trace(faithful()).get_title().startswith("ELBO by iteration")
