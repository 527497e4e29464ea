"""The page of a posterior says what was fitted, how far to trust it, and what it says of data: as the library does."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from invariants.registry import CASES

import caviar as cv
from caviar.report.html.page import gather, page_of, write_and_gather
from caviar.report.html.stated.statement import statement_of
from caviar.report.html.stated.subject import MixedModelSubject, StatedSubject

OBS = cv.Plate("obs")
HOSTILE = "<script>alert(1)</script>"


def regression_data(n=120):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    return {"X": X, "y": X @ [1.0, 2.0, 0.0] + 0.5 * rng.normal(size=n)}


@pytest.fixture(scope="module")
def regression():
    data = regression_data()
    return cv.models.linear_regression(3).fit(data, seed=0), data


@pytest.fixture(scope="module")
def hidden():
    rng = np.random.default_rng(1)
    path = np.arange(120) // 20 % 3
    data = {"x": rng.normal(5.0 * path[:, None], 1.0, (120, 2))}
    return cv.models.gaussian_hidden_markov_model(2, 3).fit(data, seed=0, n_restarts=2), data


@pytest.fixture(scope="module")
def topics():
    corpus = cv.datasets.load_political_blogs()
    with pytest.warns(cv.ConvergenceWarning):
        fitted = cv.LatentDirichletAllocation(4, random_state=0, max_iter=3).fit(corpus.counts)
    fitted.about_ = {"columns": list(corpus.words), "source": "blogs"}
    return fitted, corpus


def titles(page):
    return {finding["title"]: finding["level"] for finding in page["findings"]}


def test_every_entry_is_that_of_the_summary(regression):
    posterior, data = regression
    page = gather(posterior, data)
    expected = posterior.summary(max_rows=None).rows
    entries = [entry for entry in page["entries"] if not entry["variable"].endswith(" as sd")]
    assert [entry["variable"] for entry in entries] == [row.variable for row in expected]
    for entry, row in zip(entries, expected, strict=True):
        assert (entry["mean"], entry["sd"], entry["low"], entry["high"]) == (
            row.mean,
            row.sd,
            row.lower,
            row.upper,
        )
    assert page["fit"]["elbo"] == posterior.elbo
    assert sum(term["value"] for term in page["fit"]["terms"]) == pytest.approx(posterior.elbo)
    json.dumps(page, allow_nan=False)


def test_the_statement_tells_roles_constants_and_sizes(regression):
    lines = {line["name"]: line for line in gather(regression[0])["statement"]}
    assert lines["y"] == {
        "name": "y", "role": "observed", "law": "Normal(mean = dot(X, w), precision = tau)", "over": "120 of obs",
    }  # fmt: skip
    assert lines["X"]["role"] == "known"
    assert lines["w"]["law"] == "MultivariateNormal(mean = 0, precision = 0.01 × identity)"


def test_distance_and_calibration_are_told_with_the_data(regression):
    posterior, data = regression
    page = gather(posterior, data)
    assert titles(page) == dict.fromkeys(
        [
            "Converged",
            "Never fell",
            "The model reproduces the data",
            "Distance to the true posterior",
            "Predictions are calibrated",
        ],
        "good",
    )
    found = posterior.diagnose(data, n_draws=1000, seed=0)
    told = f"Pareto k of 1,000 draws is {found.pareto_k:.2f} ± {found.pareto_k_error:.2f}"
    assert any(told in finding["text"] for finding in page["findings"])
    told = posterior.predict({"X": data["X"]})["y"]
    own = page["rows"]["predictions"][0]
    inside = np.abs(data["y"] - told.mean) <= 1.959964 * told.standard_deviation
    assert own["covered"] == pytest.approx(inside.mean())
    assert own["rmse"] == pytest.approx(np.sqrt(np.mean((data["y"] - told.mean) ** 2)))


def test_rows_of_another_kind_are_noticed(regression):
    posterior, data = regression
    other = {"X": data["X"], "y": data["y"] + 5 * np.sign(data["X"][:, 2])}
    page = gather(posterior, other)
    assert titles(page)["Predictions are off"] == "note"
    assert page["verdict"]["level"] == "note"


def test_an_approximation_that_may_be_poor_is_noticed():
    tau = cv.Gamma("tau", 1, 1)
    x = cv.Normal("x", cv.Normal("mean", 0, 0.1), tau, plates=OBS)
    data = {"x": [1.1, 0.3, 2.2, 1.0]}
    posterior = cv.Model(x).fit(data)
    assert posterior.diagnose(data, seed=0).verdict == "unclear"
    page = gather(posterior, data)
    assert titles(page)["Distance to the true posterior"] == "note"
    told = next(own["text"] for own in page["findings"] if own["title"].startswith("Distance"))
    assert "means may still be useful, but intervals are likely to be too narrow" in told
    assert "Write the report with n_draws=10000 to find out" in told
    more = gather(posterior, data, n_draws=200)
    assert any("Pareto k of 200 draws" in own["text"] for own in more["findings"])


def test_draws_are_refused_where_none_are_made(regression):
    posterior, data = regression
    with pytest.raises(cv.ParameterError, match="at least 100; got 7"):
        gather(posterior, data, n_draws=7)
    with pytest.raises(cv.ParameterError, match="give the data, too"):
        gather(posterior, n_draws=200)
    mixture = cv.KnownVarianceMixture(2, random_state=0).fit([[0.0], [1.0], [9.0]])
    with pytest.raises(cv.ParameterError, match="Leave n_draws out"):
        gather(mixture, [[0.0], [1.0], [9.0]], n_draws=200)


def test_missing_entries_are_left_out_and_told(regression, hidden):
    posterior, data = regression
    y = data["y"].copy()
    y[:12] = np.nan
    page = gather(posterior, {**data, "y": y})
    assert page["rows"]["predictions"][0]["n"] == 108
    assert page["quality"][-1]["missing"] == pytest.approx(0.1)
    chain, rows = hidden
    x = rows["x"].copy()
    x[5:9] = np.nan
    page = gather(chain, {"x": x})
    assert page["rows"]["chains"][0]["lines"][0]["values"][4:10].count(None) == 4
    json.dumps(page, allow_nan=False)


def test_data_of_another_model_are_refused(regression):
    posterior, data = regression
    with pytest.raises(cv.DataError, match="the data lack 'y', which the model observes"):
        gather(posterior, {"X": data["X"]})
    with pytest.raises(cv.ParameterError, match="data of a posterior are a table, or a mapping"):
        gather(posterior, data["X"])


def test_a_model_of_one_unknown_is_exact_from_any_start():
    p = cv.Beta("p", 1, 1)
    page = gather(cv.Model(cv.Bernoulli("x", p, plates=OBS)).fit({"x": [1, 1, 0]}))
    # a theorem and no test, which could have failed
    assert titles(page)["One factor"] == "info"


def test_an_unfinished_fit_is_not_to_be_relied_on(hidden):
    _, data = hidden
    posterior = cv.models.gaussian_hidden_markov_model(2, 3).fit(data, seed=0, max_iter=1, tol=1e-13)
    page = gather(posterior)
    assert page["verdict"]["level"] == "bad"
    assert titles(page)["One start only"] == "note"


@pytest.mark.slow
def test_categories_along_time_keep_their_names():
    words = pytest.importorskip("pandas").DataFrame(
        {"weather": np.array(["sun", "rain"])[np.arange(40) // 10 % 2]}
    )
    model = cv.HiddenMarkovModel(2, emission="categorical", random_state=0).fit(words)
    (line,) = gather(model, words)["rows"]["chains"][0]["lines"]
    assert [line["levels"][int(k)] for k in line["values"]] == list(words["weather"])


@pytest.mark.slow
def test_hidden_states_are_those_of_the_chain(hidden):
    posterior, data = hidden
    page = gather(posterior, data)
    chain, own = posterior.local(data)["s"], page["rows"]["chains"][0]
    path = np.empty(120, dtype=int)
    for (begin, state), end in zip(own["runs"], [*(b for b, _ in own["runs"][1:]), 120], strict=True):
        path[begin:end] = state
    np.testing.assert_array_equal(path, chain.mode())
    for k, shares in own["probabilities"].items():
        np.testing.assert_allclose(shares, chain.probabilities[:, int(k)], atol=5e-4)
    assert sum(line["steps"] for line in own["table"]) == 120
    assert {own["name"] for own in page["pictures"]["cells"]} == {"mean", "transition"}
    transition = next(own for own in page["pictures"]["cells"] if own["name"] == "transition")
    assert (transition["line"], transition["column"]) == ("state", "next state")
    np.testing.assert_allclose(transition["values"], posterior["transition"].mean)


def test_groups_of_a_stated_mixture_are_counted():
    rng = np.random.default_rng(0)
    data = {"x": np.concatenate([rng.normal(m, 1, (n, 2)) for m, n in ((-5, 30), (5, 70))])}
    posterior = cv.models.gaussian_mixture(2, 2).fit(data, seed=0, n_restarts=2)
    page = gather(posterior, data)
    own = page["rows"]["groups"][0]
    assert sorted(line["rows"] for line in own["table"]) == [30, 70]
    assert titles(page)["z is clear"] == "good"


@pytest.mark.slow
def test_hidden_numbers_are_drawn_and_loadings_named_by_their_plate():
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(90, 2)) @ rng.normal(size=(2, 5)) + 0.2 * rng.normal(size=(90, 5))}
    posterior = cv.models.probabilistic_pca(5, 2).fit(data, seed=0, max_iter=100)
    page = gather(posterior, data)
    np.testing.assert_allclose(page["rows"]["clouds"][0]["points"], posterior.local(data)["z"].mean)
    cells = next(own for own in page["pictures"]["cells"] if own["name"] == "loadings")
    assert (cells["line"], cells["column"]) == ("feature", "factor")


@pytest.mark.slow
def test_names_of_columns_reach_coefficients_and_features():
    pandas = pytest.importorskip("pandas")
    data = regression_data()
    frame = pandas.DataFrame(data["X"], columns=["intercept", "dose", HOSTILE])
    posterior = cv.models.linear_regression(3).fit({"X": frame, "y": data["y"]}, seed=0)
    entries = gather(posterior)["entries"]
    assert [entry["at"] for entry in entries if entry["variable"] == "w"] == ["intercept", "dose", HOSTILE]
    rows = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    page = gather(cv.models.factor_analysis(3, 1).fit({"x": rows}, seed=0, max_iter=20))
    assert [entry["at"] for entry in page["entries"] if entry["variable"] == "mean"] == [
        "feature a",
        "feature b",
        "feature c",
    ]


@pytest.mark.slow
def test_topics_are_told_by_their_words(topics):
    fitted, corpus = topics
    page = gather(fitted, corpus.counts)
    mean = fitted.components_ / fitted.components_.sum(axis=1, keepdims=True)
    for topic in page["pictures"]["topics"]:
        best = np.argsort(-mean[topic["k"]])[:12]
        assert [word[0] for word in topic["words"]] == [corpus.words[v] for v in best]
        assert [word[1] for word in topic["words"]] == pytest.approx(mean[topic["k"]][best].tolist())
    shares = [topic["share"] for topic in page["pictures"]["topics"]]
    assert sum(shares) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True)
    proportions = fitted.transform(corpus.counts)
    for own in page["rows"]["documents"]:
        assert own["most"][0][1] == pytest.approx(proportions[:, own["k"]].max())
    assert len(page["entries"]) == 300
    text = page_of(fitted, corpus.counts)
    assert f"{4 * 2632 - 300:,} more are not" in text
    assert len(text.encode()) < 5_000_000


def test_empty_documents_and_absent_words_are_told(topics):
    fitted, corpus = topics
    counts = corpus.counts.toarray()
    counts[3] = 0
    counts[:, 7] = 0
    remarks = [line["remarks"] for line in gather(fitted, counts)["quality"]]
    assert remarks == [["1 documents without any word"], ["1 words that never occur"]]


def test_the_same_fit_is_made_by_what_the_page_says(hidden, tmp_path):
    posterior, data = hidden
    call = gather(posterior)["fit"]["call"]
    posterior.save(tmp_path / "MODEL.caviar")
    words = call.replace("MODEL.caviar", str(tmp_path / "MODEL.caviar"))
    words = re.sub(r"data = .*", "", words)
    names = {"data": data}
    exec(words, names)
    assert names["posterior"].elbo == posterior.elbo
    page = gather(cv.load(tmp_path / "MODEL.caviar"))
    assert page["fit"]["fitted_with"] == {"caviar": cv.__version__}


def test_names_from_outside_are_text_and_nothing_else():
    w = cv.MultivariateNormal(HOSTILE, [0, 0], np.eye(2))
    y = cv.Normal("</script>", cv.dot(cv.Data("'\"&", plates=OBS), w), 1.0, plates=OBS)
    data = {"'\"&": [[1.0, 2.0], [2.0, 0.5], [0.0, 1.0]], "</script>": [1.0, 2.0, 3.0]}
    text = page_of(cv.Model(y).fit(data), data, source=HOSTILE)
    assert HOSTILE not in text
    assert text.count("<script") == 2
    assert text.count("</script>") == 2


@pytest.mark.slow
def test_large_posteriors_stay_below_five_megabytes():
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(3000, 60)) + 6 * rng.integers(0, 12, size=(3000, 1))}
    posterior = cv.models.diagonal_mixture(60, 12).fit(data, seed=0, max_iter=3)
    # other rows than those of the fit are judged without ten more fits
    assert len(page_of(posterior, {"x": data["x"] + 0.1}).encode()) < 5_000_000


@pytest.mark.thinned(64)
@pytest.mark.parametrize("name", CASES)
def test_every_model_has_a_page(name, tmp_path):
    case = CASES[name]
    data = case.draw(np.random.default_rng(0), 40)
    posterior = case.fit(data, max_iter=20)
    for given in (None, data):
        page = write_and_gather(posterior, tmp_path / "page.html", given)
        json.dumps(page, allow_nan=False)
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert all(f'<section id="{name}"' in text for name in ("trust", "statement", "variables", "quality"))
    assert "No data were given" not in text
    own = {name for name, variable in posterior.model.variables.items() if variable.stated_with is variable}
    assert {line["name"] for line in page["statement"]} >= own


@pytest.mark.usefixtures("figures_of_factors")
def test_answers_are_judged_by_their_shares_and_links_hide_nothing():
    data = regression_data(200)
    data["y"] = (data["y"] > 1).astype(float)
    posterior = cv.models.logistic_regression(3).fit(data)
    page = gather(posterior, data)
    assert page["fit"]["kind"] == "Regression of y on X"
    assert "One start only" not in titles(page)
    assert [line["name"] for line in page["statement"]] == ["y", "X", "w"]
    told = posterior.predict({"X": data["X"]})["y"].mean
    own = page["rows"]["predictions"][0]
    order = np.argsort(told, kind="stable").reshape(10, 20)
    expected = np.column_stack([told[order].mean(axis=1), data["y"][order].mean(axis=1)])
    np.testing.assert_allclose(own["points"], expected)
    assert own["right"] == pytest.approx(np.mean((told > 0.5) == (data["y"] > 0.5)))
    assert [column["remarks"] for column in page["quality"]] == [[]] * 4


def test_of_many_entries_the_largest_are_shown():
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(50, 70)) + np.linspace(0, 3, 70)}
    posterior = cv.models.factor_analysis(70, 1).fit(data, seed=0, max_iter=5)
    own = next(own for own in gather(posterior)["pictures"]["intervals"] if own["name"] == "mean")
    mean = posterior["mean"].mean
    wanted = np.sort(np.argsort(-np.abs(mean), kind="stable")[:60])
    assert own["labels"] == [f"feature {j}" for j in wanted]
    assert own["mean"] == mean[wanted].tolist()
    assert own["left_out"] == 10


@pytest.mark.slow
def test_sequences_and_real_states_have_a_page():
    data = {"x": np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0)}
    posterior = cv.models.linear_dynamical_system(2, 1).fit(data, seed=0, max_iter=20)
    page = gather(posterior, data)
    assert page["rows"]["clouds"][0]["of"] == 60
    json.dumps(page, allow_nan=False)


def test_levels_of_labels_are_counted(tmp_path):
    obs, school = cv.Plate("obs"), cv.Plate("school")
    effect = cv.Normal("effect", 0, 1, plates=school)
    y = cv.Normal("y", effect[cv.Data("school", plates=obs)], 1.0, plates=obs)
    data = {"y": np.arange(40.0) % 7, "school": np.repeat([*"abcdefgh"], 5)}
    data["school"][0] = "b"
    cv.report.write(cv.Model(y).fit(data, seed=0), tmp_path / "report.html", data)
    assert "b 6, c 5, d 5, e 5, f 5, g 5, 2 more levels" in (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )


def test_the_table_of_a_hidden_markov_model_has_its_own_columns(tmp_path):
    words = np.array(["dry", "wet", "dry", "dry"] * 8)[:, None]
    model = cv.HiddenMarkovModel(2, emission="categorical", random_state=0).fit(words)
    cv.report.write(model, tmp_path / "report.html", words, n_draws=100)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    quality = page[page.index("Columns of the data") :]
    assert "dry 24, wet 8" in quality
    assert "starts" not in quality[: quality.index("</table>")]


def test_the_page_of_a_regression_has_the_columns_of_its_table():
    pytest.importorskip("formulaic")
    group = np.array(list("abc"))[np.arange(30) % 3]
    x = np.linspace(0, 1, 30)
    table = {"y": x + np.sin(np.arange(30)), "x": x, "group": group, "unused": x}
    model = cv.MixedModel("y ~ x + (x | group)", random_state=0).fit(table)
    lines = MixedModelSubject(model, table, None).quality()
    assert [line["name"] for line in lines] == ["y", "x", "group"]
    assert lines[2]["levels"] == "a 10, b 10, c 10"
    # the model has a fourth place, for groups that it has not seen
    stated = statement_of(model.posterior_, MixedModelSubject(model, table, None).group_sizes)
    over = [line["over"] for line in stated if line["over"].endswith(" of group")]
    assert over
    assert set(over) == {"3 of group"}
    assert [line["name"] for line in MixedModelSubject(model, None, None).quality()] == ["y"]


@pytest.mark.slow
def test_the_page_of_topics_found_shows_those_with_words():
    rng = np.random.default_rng(0)
    counts = np.zeros((40, 8), dtype=int)
    counts[::2, :4], counts[1::2, 4:] = rng.poisson(5, (20, 4)), rng.poisson(5, (20, 4))
    lda = cv.LatentDirichletAllocation(4, doc_topic_prior_type="dirichlet_process", moves=6, random_state=0)
    lda.fit(counts)
    assert len(lda.topics_in_use_) == 2
    assert ("Topics", "2, found; at most 4") in StatedSubject(lda, None, None).heading()
    page = gather(lda, None)
    assert sorted(own["k"] for own in page["pictures"]["topics"]) == lda.topics_in_use_
    assert page["pictures"]["cells"] == []
    [weights] = page["pictures"]["intervals"]
    assert (weights["name"], len(weights["mean"])) == ("weights", 2)


@pytest.mark.usefixtures("figures_of_factors")
def test_checks_of_a_mixture_are_called_as_its_columns():
    X = cv.datasets.load_faithful().values
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(X)
    mixture.about_ = {"columns": ["eruptions", "waiting"]}
    assert [own["name"] for own in gather(mixture, X)["checks"]["replicates"]] == ["eruptions", "waiting"]


@pytest.mark.usefixtures("figures_of_factors")
def test_states_come_before_the_model_without_names_of_code(tmp_path):
    rows = np.repeat([0.0, 4.0, 0.0, 4.0], 10)[:, None] + np.random.default_rng(0).normal(size=(40, 1))
    data = {"X": rows, "lengths": [20, 20]}
    hmm = cv.HiddenMarkovModel(2, random_state=0).fit(rows, lengths=[20, 20])
    told = write_and_gather(hmm, tmp_path / "page.html", data, n_draws=100)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.index('id="rows"') < page.index('id="statement"')
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))
    assert [facts[name] for name in ("Rows", "Sequences", "Columns", "States")] == ["40", "2", "1", "2"]
    assert "States, along the most probable path" in page
    assert {entry["variable"] for entry in told["entries"]} >= {
        "means",
        "precisions as sd",
        "transition",
    }


@pytest.mark.slow
def test_words_and_clusters_come_before_the_model():
    table = pd.DataFrame({"size": np.arange(40) % 20, "kind": np.repeat(["a", "b"], 20)})
    assert "Clusters of 40 rows" in page_of(cv.MixedMixture(2, random_state=0).fit(table), table)
    counts = np.array([[3, 1, 0, 0], [0, 0, 2, 4]] * 5)
    page = page_of(cv.LatentDirichletAllocation(2, random_state=0).fit(counts), counts)
    assert page.index('id="pictures"') < page.index('id="rows"') < page.index('id="statement"')


def test_remarks_on_intervals_are_in_the_names_and_options_of_the_user(monkeypatch):
    X = cv.datasets.load_faithful().values[:3]
    with pytest.warns(cv.CaviarWarning, match="fewer than the 5 components"):
        mixture = cv.BayesianGaussianMixture(5, random_state=0).fit(X)
    assert "An entry of means has an infinite standard deviation" in gather(mixture)["fit"]["interval_remark"]
    asked = property(lambda posterior: "fit with uncertainty='linear_response' to have it")
    monkeypatch.setattr(type(mixture.posterior_), "interval_remark", asked)
    assert gather(mixture)["fit"]["interval_remark"] == "fit with uncertainty='linear_response' to have it"
    mixture.about_ = {"command": "caviar fit rows.csv"}
    assert gather(mixture)["fit"]["interval_remark"] == "fit with --uncertainty linear-response to have it"


def test_what_was_not_seen_of_a_truncated_number_has_no_prior_of_its_own(tmp_path):
    location = cv.Normal("location", 0, 0.01)
    y = cv.TruncatedNormal("y", location, cv.Gamma("precision", 1, 1), lower=-0.5)
    cv.report.write(cv.Model(y).fit({"y": 0.7}), tmp_path / "report.html", data={"y": 0.7})
    assert "y.unseen" in (tmp_path / "report.html").read_text()


def test_documents_as_lists_of_words_have_a_page():
    """Lists of different lengths are no array, which the page asked for."""
    data = {"word": [["goal", "ball"], ["vote", "law", "law"], []]}
    model = cv.models.latent_dirichlet_allocation(2, 4, vocabulary=["goal", "ball", "law", "vote"])
    page = gather(model.fit(data, seed=0), data)
    assert "topic" in str(page["entries"][0]["at"])
