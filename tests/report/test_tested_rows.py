"""A green tick is given for what was tested: rows that were left out of a fit, or that it has not seen."""

from dataclasses import replace

import numpy as np
import pytest

import caviar as cv
from caviar.report.html.page import gather, page_of
from caviar.report.html.seen import Seen, n_folds_tried

OBS = cv.Plate("obs")


def levels(page):
    return {finding["title"]: finding["level"] for finding in page["findings"]}


def texts(page):
    return {finding["title"]: finding["text"] for finding in page["findings"]}


def wide(seed, n, d=30):
    """Return rows with half as many columns, or more, from the same coefficients for each seed."""
    rng = np.random.default_rng(seed)
    X, coefficients = rng.normal(size=(n, d)), np.random.default_rng(77).normal(size=d)
    return {"X": X, "y": X @ coefficients + rng.normal(size=n)}


@pytest.mark.slow
def test_rows_that_were_left_out_are_covered_as_new_ones_are():
    """Of 60 rows and 30 columns the intervals hold 100% of those fitted to, and 95% of 2,000 new ones."""
    shares = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, coefficients, others = (
            rng.normal(size=(60, 30)),
            rng.normal(size=30),
            rng.normal(size=(2_000, 30)),
        )
        data = {"X": X, "y": X @ coefficients + rng.normal(size=60)}
        new = {"X": others, "y": others @ coefficients + rng.normal(size=2_000)}
        posterior = cv.models.linear_regression(30).fit(data)
        left_out = [covered(other, data)[rows] for rows, other in posterior.cross_validate(data)]
        shares.append(
            [covered(posterior, data).mean(), np.concatenate(left_out).mean(), covered(posterior, new).mean()]
        )
    in_sample, held_out, exact = np.mean(shares, axis=0)
    assert in_sample > 0.99
    assert abs(held_out - exact) < 0.03
    assert in_sample - exact > 0.03
    page = gather(posterior, data)
    own = page["rows"]["predictions"][0]
    assert [own["covered"], own["held_out"]["covered"]] == shares[-1][:2]
    assert own["held_out"]["n"] == 60
    assert levels(page)["Too few rows to judge the calibration"] == "info"
    assert "Predictions are calibrated" not in levels(page)


def covered(posterior, data):
    told = posterior.predict({"X": data["X"]})["y"]
    return np.abs(data["y"] - told.mean) <= 1.959964 * told.standard_deviation


@pytest.mark.usefixtures("figures_of_factors")
def test_what_is_left_out_is_told_beside_what_is_in_sample():
    data = wide(0, 120, 60)
    page = gather(cv.models.linear_regression(60).fit(data), data)
    own = page["rows"]["predictions"][0]
    (text,) = [
        text for title, text in texts(page).items() if "alibrat" in title or title.startswith("Predictions")
    ]
    assert (
        f"{own['held_out']['covered']:.1%} of 120 observations of y, each predicted by a fit without it"
        in text
    )
    assert f"(in-sample {own['covered']:.1%})" in text
    assert own["held_out"]["rmse"] > 1.3 * own["rmse"]
    assert own["title"].endswith(", in-sample")


def test_new_rows_are_a_test_as_they_are():
    posterior = cv.models.linear_regression(3).fit(wide(0, 200, 3))
    page = gather(posterior, wide(1, 500, 3))
    assert levels(page)["Predictions are calibrated"] == "good"
    assert "which the fit has not seen" in texts(page)["Predictions are calibrated"]
    assert page["rows"]["predictions"][0]["held_out"] is None
    assert not page["rows"]["predictions"][0]["title"].endswith("in-sample")
    assert levels(page)["Distance to the true posterior"] == "info"
    assert "these are other rows" in texts(page)["Distance to the true posterior"]


@pytest.mark.parametrize("kind", ["some of the rows", "a file of an earlier version"])
def test_rows_that_may_have_been_seen_are_no_test(kind):
    data = wide(0, 300, 3)
    posterior = cv.models.linear_regression(3).fit(data)
    if kind == "some of the rows":
        given = {name: values[:150] for name, values in data.items()}
    else:
        posterior.row_marks, given = None, wide(1, 150, 3)
    page = gather(posterior, given)
    assert levels(page)["Calibration is not tested"] == "info"
    label = "In-sample, " if kind == "some of the rows" else "Perhaps in-sample, "
    assert texts(page)["Calibration is not tested"].startswith(label)


def test_weights_that_the_report_does_not_know_leave_rows_untested():
    data = wide(0, 200, 3)
    posterior = cv.models.linear_regression(3).fit(data, sample_weight=np.linspace(0.5, 2, 200))
    page = gather(posterior, data)
    assert levels(page)["Calibration is not tested"] == "info"
    assert levels(page)["Distance to the true posterior"] == "info"


@pytest.mark.slow
def test_a_saved_fit_is_judged_alike(tmp_path):
    data = wide(0, 120, 10)
    posterior = cv.models.linear_regression(10).fit(data)
    posterior.save(tmp_path / "fit.caviar")
    pages = [gather(own, data) for own in (posterior, cv.load(tmp_path / "fit.caviar"))]
    assert pages[0]["findings"] == pages[1]["findings"]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("k", "error", "level"),
    [
        (0.1, 0.1, "good"),
        (0.45, 0.1, "info"),
        (0.6, 0.04, "note"),
        (0.55, 0.1, "note"),
        (0.69, 0.1, "note"),
        (0.8, 0.1, "note"),
    ],
)
def test_only_a_small_k_is_green(k, error, level, monkeypatch):
    data = wide(0, 100, 2)
    posterior = cv.models.linear_regression(2).fit(data)
    found = replace(posterior.diagnose(data, n_draws=100, seed=0), pareto_k=k, pareto_k_error=error)
    monkeypatch.setattr(cv.Posterior, "diagnose", lambda *arguments, **keywords: found)
    page = gather(posterior, data)
    assert levels(page)["Distance to the true posterior"] == level
    assert f"{k:.2f} ± {error:.2f}" in texts(page)["Distance to the true posterior"]
    assert ("at least about" in texts(page)["Distance to the true posterior"]) == (0.5 < k < 0.7 - 2 * error)


@pytest.mark.slow
def test_outliers_of_a_mixture_are_judged_by_rows_that_were_left_out():
    """Of 150 rows and 20 columns hardly one is an outlier to the fit that has seen it, and several are of new ones."""
    rng = np.random.default_rng(0)
    X, others = rng.standard_t(8, size=(150, 20)), rng.standard_t(8, size=(5000, 20))
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
    page = gather(mixture, X)
    (finding,) = [own for own in page["findings"] if "ensity" in own["title"]]
    share = float(finding["text"].partition("%")[0]) / 100
    in_sample = page["rows"]["n_outliers"] / 150
    new = np.mean(mixture.is_outlier(others, random_state=0))
    assert in_sample < new / 2
    assert abs(share - new) < 3 * np.sqrt(new * (1 - new) / 150)
    assert "each judged by a fit without it" in finding["text"]
    assert finding["title"] == "Density misses new rows"
    assert finding["level"] == ("bad" if share > 0.1 else "note")
    assert "Take fewer components" in finding["text"]
    text = page_of(mixture, X)
    assert "In-sample" in text
    assert "Rows that the fit has seen look less rare to it than new ones" in text


@pytest.mark.slow
def test_a_mixture_judges_new_rows_directly_and_seen_ones_not_at_all():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1, (300, 2)) for m in (-4, 4)])
    mixture = cv.BayesianGaussianMixture(2, n_init=2, random_state=0).fit(X)
    for rows, title, level in (
        (X, "Density fits the rows", "good"),
        (rng.permutation(X), "Density fits the rows", "good"),
        (np.concatenate([rng.normal(m, 1, (300, 2)) for m in (-4, 4)]), "Density fits the rows", "good"),
        (X[:200], "Density is not tested", "info"),
    ):
        assert levels(gather(mixture, rows))[title] == level
    few = cv.BayesianGaussianMixture(2, random_state=0).fit(X[::10])
    assert levels(gather(few, X[::10]))["Too few rows to judge the density"] == "info"


def test_the_folds_of_a_report_are_bounded():
    assert [n_folds_tried(n) for n in (9, 10, 20_000, 100_000, 200_000, 200_001)] == [0, 10, 10, 2, 1, 0]
    assert Seen(is_fit=False, share=0.05).is_new
    assert not Seen(is_fit=False, share=float("nan")).is_new
    assert not Seen(is_fit=True, share=0.0).is_new


def test_rows_without_a_test_are_called_in_sample(monkeypatch):
    monkeypatch.setattr("caviar.report.html.seen.n_folds_tried", lambda n_rows: 0)
    data = wide(0, 200, 3)
    page = gather(cv.models.linear_regression(3).fit(data), data)
    assert levels(page)["Calibration is not tested"] == "info"
    assert "fits without some of 200 rows are not tried" in texts(page)["Calibration is not tested"]


def test_a_fit_that_began_at_its_end_has_no_tick_for_rising():
    """Its trace has two points at one height: nothing was tested."""
    data = {"x": [[-5.0], [-5.2], [5.0], [5.1], [4.9]]}
    posterior = cv.models.normal_wishart_mixture(1, 2).fit(data, seed=0)
    posterior.elbo_trace = np.array([posterior.elbo - 1e-8, posterior.elbo])
    page = gather(posterior)
    assert levels(page)["Settled from the start"] == "info"
    assert "Never fell" not in levels(page)
    posterior.elbo_trace = np.array([posterior.elbo - 1.0, posterior.elbo])
    assert levels(gather(posterior))["Never fell"] == "good"
    posterior.elbo_trace = np.array([posterior.elbo + 1.0, posterior.elbo])
    assert levels(gather(posterior))["It fell on the way"] == "note"
