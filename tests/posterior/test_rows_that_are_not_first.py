"""Tables whose rows are the second axis: what compares values with predictions says the same as of the transpose."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

import caviar as cv
from caviar.report.html.checks.section import replicates_of

ITEM, OBS = cv.Plate("item", 3), cv.Plate("obs")
X = np.linspace(0.0, 1.0, 40)
Y = np.random.default_rng(0).normal(size=(40, 3)) + np.array([0.0, 5.0, 10.0]) + X[:, None]


def fitted(rows_are_first: bool) -> tuple[cv.Posterior, dict[str, np.ndarray]]:
    level = cv.Normal("level", 0, 0.01, plates=ITEM)
    slope, precision = cv.Normal("slope", 0, 1), cv.Gamma("tau", 1, 1)
    plates = (OBS, ITEM) if rows_are_first else (ITEM, OBS)
    y = cv.Normal("y", level + slope * cv.Data("x", plates=OBS), precision, plates=plates)
    data = {"x": X, "y": Y if rows_are_first else Y.T}
    return cv.Model(y).fit(data), data


def test_residuals_have_the_rows_first() -> None:
    found = [posterior.residuals(data) for posterior, data in map(fitted, (True, False))]
    assert found[0].values.shape == (40, 3)
    np.testing.assert_allclose(found[1].values, found[0].values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[1].to_frame(), found[0].to_frame(), rtol=1e-9, atol=1e-9)


def test_checks_of_a_report_have_a_chart_for_each_column() -> None:
    charts = [replicates_of(posterior, data) for posterior, data in map(fitted, (True, False))]
    for own in charts:
        assert [int(one.bars.observed.sum()) for one in own] == [40, 40, 40]
        # column by column the data sets are like the data; those of other columns would lie elsewhere
        assert all(one.bars.share_outside < 0.2 for one in own)
        middles = [np.average(one.bars.edges[:-1], weights=one.bars.observed) for one in own]
        np.testing.assert_allclose(middles, Y.mean(axis=0), atol=0.7)


@pytest.mark.parametrize("draw", [cv.plot.predictive_check, cv.plot.residuals, cv.plot.calibration])
def test_plots_take_a_column_of_the_table(draw) -> None:
    drawn = []
    for rows_are_first in (True, False):
        ax = draw(*fitted(rows_are_first), entry=1)
        drawn.append([line.get_xydata() for line in ax.lines] + [ax.get_title(), ax.get_xlim()])
        plt.close(ax.figure)
    for one, other in zip(*(own[:-2] for own in drawn), strict=True):
        if draw is not cv.plot.predictive_check:
            # its data sets are drawn in the order of the axes
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    assert drawn[0][-2] == drawn[1][-2]
    np.testing.assert_allclose(drawn[0][-1], drawn[1][-1], atol=1.5)


def single_value() -> tuple[cv.Posterior, dict[str, object]]:
    """A number for which there are no rows, beside rows."""
    level = cv.Normal("level", 0, 1)
    model = cv.Model(cv.Normal("whole", level, 4.0), cv.Normal("x", level, 1.0, plates=OBS))
    data = {"whole": 0.5, "x": [0.1, 0.4, -0.3]}
    return model.fit(data), data


@pytest.mark.parametrize("draw", [cv.plot.predictive_check, cv.plot.residuals, cv.plot.calibration])
def test_a_value_without_rows_is_not_drawn_along_them(draw) -> None:
    posterior, data = single_value()
    with pytest.raises(cv.ParameterError, match="'whole' does not have a value in each row"):
        draw(posterior, data, variable="whole")


def test_checks_of_a_report_leave_out_a_value_without_rows(tmp_path) -> None:
    posterior, data = single_value()
    assert [own.name for own in replicates_of(posterior, data)] == ["x"]
    cv.report.write(posterior, tmp_path / "report.html", data=data)
    assert "ELBO" in (tmp_path / "report.html").read_text()


def test_a_state_sequence_draws_the_columns_of_the_table() -> None:
    drawn = []
    for rows_are_first in (True, False):
        s = cv.MarkovChain("s", [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], along=OBS)
        level = cv.Constant("level", [0.0, 3.0], plates=cv.Plate("state", 2))
        x = cv.Normal("x", level[s], 1.0, plates=(OBS, ITEM) if rows_are_first else (ITEM, OBS))
        data = {"x": Y if rows_are_first else Y.T}
        axes = cv.plot.state_sequence(cv.Model(x).fit(data), data)
        drawn.append([line.get_xydata() for line in axes[0].lines])
        plt.close(axes[0].figure)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal([line[:, 1] for line in drawn[0]], Y.T)
