"""The plot of a comparison says what the table does."""

import numpy as np
import pytest

import caviar as cv

DATA = {"x": [1.0, -0.5, 2.0, 0.3]}


def fitted(mean):
    x = cv.Normal("x", cv.Normal("m", mean, 1), cv.Gamma("tau", 2, 2), plates=cv.Plate("obs"))
    return cv.Model(x).fit(DATA)


@pytest.fixture(scope="module")
def fits():
    return {"far": fitted(9.0), "near": fitted(1.0)}


def test_markers_are_at_the_evidence_and_at_the_bound(fits):
    table = cv.compare(fits, DATA)
    ax = cv.plot.comparison(table)
    assert [label.get_text().split(" (")[0] for label in ax.get_yticklabels()] == ["near", "far"]
    best = table.rows[0].evidence.value
    drawn = {(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in ax.lines}
    for place, row in enumerate(table.rows):
        for value in (row.evidence.elbo, row.evidence.value):
            assert any(np.isclose(x, value - best) and y == place for x, y in drawn)


def test_of_bounds_alone_there_are_hollow_markers_only(fits):
    ax = cv.plot.comparison(cv.compare(fits))
    # a marker for each model, and the line at the best
    assert len(ax.lines) == 3


def test_anything_else_is_refused(fits):
    with pytest.raises(cv.ParameterError, match=r"cv\.plot\.comparison"):
        cv.plot.comparison(fits)
