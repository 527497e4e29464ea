"""A report is one page that needs nothing else, says what the fit found, and takes every text as text."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import caviar as cv
from caviar.report.html.page import gather, page_of
from caviar.report.html.quality import quality_of

X = cv.datasets.load_faithful().values
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"' onload='alert(3)",
    "{{a}} $b &amp;",
]


class Outline(HTMLParser):
    """What stands in a page: elements with attributes, and texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def mixture():
    fitted = cv.BayesianGaussianMixture(3, n_init=4, random_state=0).fit(X)
    fitted.about_ = {"columns": ["eruptions", "waiting"], "source": "faithful.csv", "rows": 272}
    return fitted


def named(columns):
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(m, 1, (100, len(columns))) for m in (-4, 4)])
    fitted = cv.BayesianGaussianMixture(2, random_state=0).fit(rows)
    fitted.about_ = {"columns": columns, "source": columns[0]}
    return fitted, rows


@pytest.mark.slow
def test_names_from_outside_are_text_and_nothing_else():
    fitted, rows = named(HOSTILE)
    text = page_of(fitted, rows, source=HOSTILE[1])
    outline = Outline(text)
    scripts = [attributes for tag, attributes in outline.elements if tag == "script"]
    assert [attributes.get("id") for attributes in scripts] == ["figures", None]
    assert not any(tag == "img" for tag, _ in outline.elements)
    assert not any(name.startswith("on") for _, attributes in outline.elements for name in attributes)
    for name in HOSTILE:
        assert name in outline.texts


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(mixture):
    text = page_of(mixture, X)
    loaded = [attributes.get("src") or attributes.get("href") for _, attributes in Outline(text).elements]
    assert all(target.startswith(("#", "data:")) for target in loaded if target)
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\((?!#)", text)
    assert len(text) < 5_000_000


@pytest.mark.slow
def test_a_large_fit_stays_below_five_megabytes():
    rng = np.random.default_rng(1)
    k = 30
    rows = rng.normal(size=(3000, 60)) + 6 * rng.integers(0, k, size=(3000, 1))
    fitted = cv.BayesianGaussianMixture(k, covariance_type="diag", random_state=0)
    # other rows than those of the fit are judged without ten more fits
    text = page_of(fitted.fit(rows), rows + 0.1)
    assert len(text.encode()) < 5_000_000
    assert "36 more are not" in text


@pytest.mark.slow
def test_figures_are_those_of_the_estimator(mixture):
    page = gather(mixture, X)
    labels = mixture.predict(X)
    assert page["fit"]["elbo"] == mixture.elbo_
    assert page["fit"]["restarts"] == mixture.posterior_.restart_elbos.tolist()
    assert sum(term["value"] for term in page["fit"]["terms"]) == pytest.approx(mixture.elbo_)
    assert [entry["rows"] for entry in page["components"]] == np.bincount(labels, minlength=3).tolist()
    assert [entry["weight"][0] for entry in page["components"]] == mixture.weights_.tolist()
    assert page["rows"]["n"] == 272
    assert sum(entry["rows"] for entry in page["rows"]["certainty"]) == 272
    assert page["rows"]["mean_log_density"] == pytest.approx(mixture.score(X), rel=1e-5)
    json.dumps(page, allow_nan=False)


@pytest.mark.slow
def test_densities_integrate_to_one_and_are_the_sum_of_their_parts(mixture):
    for own in gather(mixture, X)["plot"]["densities"]:
        total = np.array(own["total"])
        step = (own["high"] - own["low"]) / (len(total) - 1)
        assert step * total.sum() == pytest.approx(1, abs=0.02)
        parts = np.sum(list(own["parts"].values()), axis=0)
        np.testing.assert_allclose(parts, total, atol=0.01 * total.max())
        assert sum(own["histogram"]) * (own["high"] - own["low"]) / len(own["histogram"]) == pytest.approx(
            1, abs=0.02
        )


@pytest.mark.usefixtures("figures_of_factors")
def test_the_least_expected_rows_are_found(mixture):
    rows = np.concatenate([X, [[3.0, 200.0], [-5.0, 50.0]]])
    page = gather(mixture, rows)
    assert {entry["row"] for entry in page["outliers"][:2]} == {272, 273}
    expected = mixture.outlier_scores(rows)
    assert [entry["score"] for entry in page["outliers"]] == pytest.approx(
        expected[[entry["row"] for entry in page["outliers"]]].tolist()
    )
    assert {272, 273} <= set(page["plot"]["points"]["rows"])


def test_rows_with_missing_entries_are_compared_with_draws_that_lack_the_same(mixture):
    rows = X.copy()
    rows[::3, 0] = np.nan
    rows[5] = np.nan
    page = gather(mixture, rows)
    assert page["rows"]["n_judged"] == 271
    # Half of the observed columns give half of the surprise: such rows are no less, and no more, outliers.
    assert page["rows"]["n_outliers"] <= 8
    assert page["quality"][0]["missing"] == pytest.approx(np.isnan(rows[:, 0]).mean())


def test_without_data_less_is_shown_and_it_is_said(mixture):
    text = page_of(mixture)
    assert "No data were given" in text
    assert "Without data only the components are drawn" in text
    assert 'id="outliers"' not in text


@pytest.mark.slow
def test_the_verdict_follows_from_how_the_fit_ended(mixture):
    assert gather(mixture, X)["verdict"]["level"] == "good"
    with pytest.warns(cv.ConvergenceWarning):
        unfinished = cv.BayesianGaussianMixture(3, max_iter=2, tol=1e-13, random_state=0).fit(X)
    page = gather(unfinished)
    assert page["verdict"]["level"] == "bad"
    assert [finding["title"] for finding in page["findings"] if finding["level"] == "bad"] == [
        "Not converged"
    ]
    once = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
    assert [finding["title"] for finding in gather(once)["findings"] if finding["level"] == "note"] == [
        "One start only"
    ]


def test_a_density_that_misses_the_rows_is_told():
    rng = np.random.default_rng(0)
    ring = rng.uniform(0, 2 * np.pi, 600)
    rows = np.stack([np.cos(ring), np.sin(ring)], axis=1)
    fitted = cv.BayesianGaussianMixture(1, random_state=0).fit(rows)
    far = np.concatenate([rows, rng.normal(0, 30, (100, 2))])
    titles = {finding["title"]: finding["level"] for finding in gather(fitted, far)["findings"]}
    assert titles["Density misses rows"] == "bad"


@pytest.mark.slow
def test_superfluous_components_are_named():
    # under this prior two components are all that the eruptions need; a learnt scale finds rows for a third
    mixture = cv.BayesianGaussianMixture(
        3, covariance_prior="empirical", mean_precision_prior=1.0, n_init=4, random_state=0
    ).fit(X)
    found = {finding["title"]: finding["text"] for finding in gather(mixture, X)["findings"]}
    spare = int(mixture.weights_.argmin())
    assert f"Component {spare} has (almost) no rows" in found["Superfluous components"]
    assert spare not in [entry["k"] for entry in gather(mixture, X)["plot"]["ellipses"]]


@pytest.mark.parametrize(
    ("column", "stands_out"),
    [
        ([12.1, 15.2, 9.8, 1000.0, 11.0, 14.4, 14.0, 10.1, 15.5, 12.0], True),
        ([12.1, 15.2, 9.8, 21.0, 11.0, 14.4, 14.0, 10.1, 15.5, 12.0], False),
        ([12.1, 1000.0, 12.2], False),
        ([1.0, *9 * [0.0]], False),
    ],
)
def test_a_value_far_out_among_few_stands_out(column, stands_out):
    """Among ten values none can be four standard deviations of them all from their mean."""
    [quality] = quality_of(np.array(column)[:, np.newaxis], ["x"], {})
    assert any("farthest" in remark for remark in quality["remarks"]) == stands_out


@pytest.mark.parametrize(("n_marks", "stands_out"), [(1, True), (40, True), (90, True), (160, False)])
def test_a_value_far_out_in_many_rows_stands_out(n_marks, stands_out):
    """As an unusual mark of missing values: they were part of the standard deviation they were compared with."""
    column = np.random.default_rng(0).normal(size=200)
    column[:n_marks] = -1050.0
    [quality] = quality_of(column[:, np.newaxis], ["x"], {})
    told = [remark for remark in quality["remarks"] if "farthest" in remark]
    assert bool(told) == stands_out
    if n_marks > 1 and stands_out:
        assert told[0].startswith(f"its farthest value, -1050 in {n_marks} rows, is ")
        assert told[0].endswith("; if it marks missing values, make them missing")


@pytest.mark.slow
def test_remarks_on_columns():
    rng = np.random.default_rng(0)
    rows = np.column_stack(
        [rng.normal(size=500), np.full(500, 7.0), rng.integers(0, 3, 500), rng.normal(size=500)]
    )
    rows[0, 3] = 400.0
    rows[:200, 0] = np.nan
    fitted = cv.BayesianGaussianMixture(1, covariance_type="diag", random_state=0).fit(rows)
    fitted.about_ = {"column_summary": {"x3": {"min": -5.0, "max": 5.0}}}
    remarks = [column["remarks"] for column in gather(fitted, rows)["quality"]]
    assert remarks[0] == ["40% missing"]
    assert remarks[1] == ["constant: it does not distinguish rows"]
    assert remarks[2] == ["only 3 distinct values: a category rather than a measurement?"]
    others = rows[1:, 3]
    assert remarks[3][0].startswith(
        f"its farthest value is {(400 - others.mean()) / others.std():.0f} standard deviations of the others"
    )
    assert remarks[3][1] == "1 value outside what the model was fitted to (-5 to 5)"


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        cv.GaussianMixture(2, random_state=0),
        cv.BayesianGaussianMixture(2, covariance_type="tied", random_state=0),
        cv.BayesianGaussianMixture(
            2, covariance_type="diag", mean_precision_family="independent", random_state=0
        ),
        cv.BayesianGaussianMixture(1, covariance_type="spherical", random_state=0),
    ],
)
def test_every_mixture_has_a_report(estimator):
    text = page_of(estimator.fit(X), X)
    assert repr(estimator).splitlines()[0] in "".join(Outline(text).texts)


def test_mixtures_of_one_column_have_a_report():
    one = X[:, :1]
    known = page_of(cv.KnownVarianceMixture(2, random_state=0).fit(one), one)
    assert 'id="density"' in known
    assert 'id="pairs"' not in known


@pytest.mark.usefixtures("figures_of_factors")
def test_data_without_their_errors_are_refused():
    fitted = cv.BayesianGaussianMixture(2, random_state=0).fit(X, noise_covariance=np.full((272, 2), 0.01))
    assert "No data were given" in page_of(fitted)
    with pytest.raises(cv.ParameterError, match="leave the data out"):
        page_of(fitted, X)


def test_only_fitted_mixtures_and_html_files_are_taken(tmp_path, mixture):
    with pytest.raises(
        cv.ParameterError, match="a report is of a fitted estimator of caviar, or of a posterior"
    ):
        cv.report.write(cv.BayesianGaussianMixture(2), tmp_path / "r.html")
    with pytest.raises(cv.DataError, match=r"its name must end with \.html"):
        cv.report.write(mixture, tmp_path / "r.pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_saved_mixture_tells_which_version_saved_it(tmp_path, mixture):
    mixture.save(tmp_path / "m.caviar")
    assert gather(cv.load(tmp_path / "m.caviar"))["fit"]["fitted_with"] == {"caviar": cv.__version__}


@pytest.mark.slow
def test_a_lone_half_of_a_character_in_a_name_does_not_stop_the_report(tmp_path):
    fitted, rows = named(["\ud800", "b"])
    cv.report.write(fitted, tmp_path / "r.html", rows)
    assert "<title>" in (tmp_path / "r.html").read_text(encoding="utf-8")
