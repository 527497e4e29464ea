"""Labels of groups, chosen by the records of these, ``mean[z[group]]``: mixtures over groups in long format."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import nbinom, norm

import caviar as cv

RECORD = cv.Plate("record")
N_GROUPS, EACH = 40, 4
GROUPS = np.repeat(np.arange(N_GROUPS), EACH)
RNG = np.random.default_rng(0)
TRUTH = RNG.integers(3, size=N_GROUPS)
TIME = np.tile(np.arange(EACH) - 1.5, N_GROUPS)
GROWTH = RNG.normal(
    np.array([0.0, 0.0, 3.0])[TRUTH][GROUPS] + np.array([1.5, -1.5, 0.0])[TRUTH][GROUPS] * TIME
)


def of_record(z, name="group"):
    return z[cv.Data(name, plates=RECORD)]


def growth(n_groups=N_GROUPS, kinds=3):
    """Return intercepts and slopes of latent classes of groups: latent-class growth."""
    kind = cv.Plate("kind", kinds)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(kinds)), plates=cv.Plate("person", n_groups))
    level, slope = cv.Normal("level", 0, 0.01, plates=kind), cv.Normal("slope", 0, 0.01, plates=kind)
    own = of_record(z)
    mean = level[own] + slope[own] * cv.Data("time", plates=RECORD)
    return cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1, 1), plates=RECORD))


def test_known_components_have_the_exact_evidence_and_posterior():
    rng = np.random.default_rng(1)
    labels, y = rng.integers(6, size=25), rng.normal(size=25)
    means = cv.Constant("means", [-1.0, 1.5], plates=cv.Plate("kind", 2))
    z = cv.Categorical("z", [0.3, 0.7], plates=cv.Plate("person", 6))
    posterior = cv.Model(cv.Normal("y", means[of_record(z)], 1.0, plates=RECORD)).fit(
        {"y": y, "group": labels}
    )
    logits = norm.logpdf(y[:, None], [-1.0, 1.5])
    joint = np.log([0.3, 0.7]) + np.array([logits[labels == g].sum(0) for g in range(6)])
    evidence = logsumexp(joint, axis=1)
    assert posterior.elbo == pytest.approx(evidence.sum(), rel=1e-13)
    np.testing.assert_allclose(posterior["z"].probabilities, np.exp(joint - evidence[:, None]), atol=1e-13)


def test_groups_of_one_size_are_rows_of_a_wide_table():
    """The same model with a row for each group, whose label is an ordinary one."""
    long = growth().fit({"y": GROWTH, "group": GROUPS, "time": TIME}, tol=1e-12, seed=0, n_restarts=3)
    person, occasion, kind = cv.Plate("person"), cv.Plate("occasion", EACH), cv.Plate("kind", 3)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=person)
    level, slope = cv.Normal("level", 0, 0.01, plates=kind), cv.Normal("slope", 0, 0.01, plates=kind)
    time = cv.Constant("time", TIME[:EACH], plates=occasion)
    y = cv.Normal("y", level[z] + slope[z] * time, cv.Gamma("tau", 1, 1), plates=(person, occasion))
    wide = cv.Model(y).fit({"y": GROWTH.reshape(N_GROUPS, EACH)}, tol=1e-12, seed=0, n_restarts=3)
    assert long.elbo == pytest.approx(wide.elbo, rel=1e-9)
    order, other = np.argsort(long["level"].mean), np.argsort(wide["level"].mean)
    np.testing.assert_allclose(long["slope"].mean[order], wide["slope"].mean[other], rtol=1e-4)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(3))
def test_every_start_finds_the_classes(seed):
    posterior = growth().fit({"y": GROWTH, "group": GROUPS, "time": TIME}, seed=seed)
    reference = growth().fit({"y": GROWTH, "group": GROUPS, "time": TIME}, seed=10, n_restarts=10)
    assert posterior.elbo == pytest.approx(reference.elbo, abs=1e-3)
    found = posterior["z"].probabilities.argmax(1)
    assert (
        np.mean([np.mean(TRUTH[found == k] == np.bincount(TRUTH[found == k]).argmax()) for k in range(3)])
        > 0.9
    )


def test_votes_on_items_weigh_annotators_by_how_often_they_are_right():
    """Dawid and Skene in long format: confusions are chosen by the class of the item and by the annotator."""
    rng = np.random.default_rng(3)
    accuracy = np.array([0.95, 0.9, 0.4, 0.4, 0.4])
    truth = rng.integers(3, size=120)
    items = np.repeat(np.arange(120), 3)
    voters = np.concatenate([rng.choice(5, 3, replace=False) for _ in range(120)])
    votes = np.where(
        rng.random(len(items)) < accuracy[voters], truth[items], rng.integers(3, size=len(items))
    )
    annotator, right = cv.Plate("annotator", 5), np.ones((3, 5, 3)) + 2 * np.eye(3)[:, None, :]
    confusion = cv.Dirichlet("confusion", right, plates=(cv.Plate("class", 3), annotator))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(3)), plates=cv.Plate("item", 120))
    chosen = confusion[of_record(z, "item")][cv.Data("voter", plates=RECORD)]
    model = cv.Model(cv.Categorical("vote", chosen, plates=RECORD))
    posterior = model.fit({"vote": votes, "item": items, "voter": voters}, seed=0, tol=1e-12)
    # its own update: counts of votes by class and annotator
    counts = np.zeros((3, 5, 3))
    for item, voter, vote in zip(items, voters, votes, strict=True):
        counts[:, voter, vote] += posterior["z"].probabilities[item]
    np.testing.assert_allclose(posterior["confusion"].concentration, right + counts, atol=1e-4)
    majority = np.array([np.bincount(votes[items == i], minlength=3).argmax() for i in range(120)])
    found = posterior["z"].probabilities.argmax(1)
    assert np.mean(found == truth) > np.mean(majority == truth)


@pytest.mark.slow
def test_predictions_are_those_of_draws():
    posterior = growth().fit({"y": GROWTH, "group": GROUPS, "time": TIME})
    new = {"group": np.array([0, 0, 7]), "time": np.array([0.0, 3.0, 1.0])}
    predicted = posterior.predict(new)["y"]
    draws = posterior.predictive(data=new, n_draws=2_000, seed=0)["y"]
    np.testing.assert_allclose(predicted.mean, draws.mean(0), atol=0.12)
    np.testing.assert_allclose(predicted.standard_deviation, draws.std(0), rtol=0.08)


@pytest.mark.slow
def test_saved_weighted_and_in_batches(tmp_path):
    data = {"y": GROWTH, "group": GROUPS, "time": TIME}
    posterior = growth().fit(data, tol=1e-12)
    posterior.save(tmp_path / "growth.caviar")
    again = cv.load(tmp_path / "growth.caviar")
    assert repr(again.model.leaves[0].stated) == repr(posterior.model.leaves[0].stated)
    np.testing.assert_array_equal(again["z"].probabilities, posterior["z"].probabilities)
    twice = {name: np.concatenate([own, own]) for name, own in data.items()}
    whole = growth().fit(twice, tol=1e-12).elbo
    assert growth().fit(data, sample_weight=np.full(len(GROWTH), 2.0), tol=1e-12).elbo == pytest.approx(
        whole, rel=1e-9
    )


@pytest.mark.starts_of_users
def test_labels_that_are_known_in_part_stay():
    known = np.full(N_GROUPS, np.nan)
    known[:10] = TRUTH[:10]
    posterior = growth().fit({"y": GROWTH, "group": GROUPS, "time": TIME, "z": known})
    np.testing.assert_allclose(posterior["z"].probabilities[:10], np.eye(3)[TRUTH[:10]])
    assert np.mean(posterior["z"].probabilities.argmax(1) == TRUTH) > 0.9


def test_three_ways_of_choosing_by_one_label_are_refused():
    z = cv.Categorical("z", [0.5, 0.5], plates=cv.Plate("person", 4))
    a, b, c = (cv.Normal(name, 0, 1, plates=cv.Plate(f"kind of {name}", 2)) for name in "abc")
    mean = a[of_record(z)] + b[of_record(z, "other")] + c[of_record(z, "third")]
    with pytest.raises(
        cv.ConjugacyError, match=r"chooses in 'y' as z\[group\] and as z\[other\] and as z\[third\]"
    ):
        cv.Model(cv.Normal("y", mean, 1.0, plates=RECORD))
    with pytest.raises(cv.PlateError, match=r"give the 'person' of each of its repetitions: a\[z\[Data"):
        cv.Normal("y", a[z], 1.0, plates=RECORD)


@pytest.mark.parametrize("groups", [[0, 1, 2, 40], [0, 1, -1, 2], [0, 1, 0.5, 2]])
def test_records_of_no_group_are_refused(groups):
    with pytest.raises(cv.DataError, match="'group', which choose from plate 'person' of 'z'"):
        growth().fit({"y": np.zeros(4), "time": np.zeros(4), "group": np.array(groups)})


@pytest.mark.slow
def test_votes_that_occur_twice_are_votes_of_weight_two():
    """Rows that differ in labels only are merged in the sample of a start: its votes were those of all rows."""
    rng = np.random.default_rng(5)
    items, voters = rng.integers(20, size=120), rng.integers(3, size=120)
    truth = rng.integers(2, size=20)
    votes = np.where(rng.random(120) < 0.8, truth[items], 1 - truth[items])
    right = np.ones((2, 3, 2)) + np.eye(2)[:, None]
    confusion = cv.Dirichlet("confusion", right, plates=(cv.Plate("class", 2), cv.Plate("annotator", 3)))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=cv.Plate("item", 20))
    chosen = confusion[of_record(z, "item")][cv.Data("voter", plates=RECORD)]
    model = cv.Model(cv.Categorical("vote", chosen, plates=RECORD))
    rows, counts = np.unique(np.column_stack([votes, items, voters]), axis=0, return_counts=True)
    assert counts.max() > 1
    many = model.fit({"vote": votes, "item": items, "voter": voters}, seed=0, tol=1e-12)
    few = model.fit(
        dict(zip(("vote", "item", "voter"), rows.T, strict=True)), sample_weight=counts, seed=0, tol=1e-12
    )
    assert many.elbo == pytest.approx(few.elbo, rel=1e-12)
    assert many.elbo > model.fit({"vote": votes, "item": items, "voter": voters}, n_restarts=10).elbo - 1e-3
    assert np.mean(many["z"].probabilities.argmax(1) == truth) > 0.8


@pytest.mark.parametrize("groups_first", [True, False])
def test_a_label_of_groups_for_each_column_has_the_exact_evidence(groups_first):
    rng, column, person = np.random.default_rng(1), cv.Plate("column", 3), cv.Plate("person", 6)
    labels, y = rng.integers(6, size=25), rng.normal(size=(25, 3))
    means = cv.Constant("means", [-1.0, 1.5], plates=cv.Plate("kind", 2))
    plates = (person, column) if groups_first else (column, person)
    z = cv.Categorical("z", [0.3, 0.7], plates=plates)
    posterior = cv.Model(cv.Normal("y", means[of_record(z)], 1.0, plates=(RECORD, column))).fit(
        {"y": y, "group": labels}
    )
    logits = norm.logpdf(y[..., None], [-1.0, 1.5])
    joint = np.log([0.3, 0.7]) + np.array([logits[labels == g].sum(0) for g in range(6)])
    evidence = logsumexp(joint, axis=-1)
    assert posterior.elbo == pytest.approx(evidence.sum(), rel=1e-13)
    expected = np.exp(joint - evidence[..., None])
    found = posterior["z"].probabilities
    np.testing.assert_allclose(found if groups_first else found.swapaxes(0, 1), expected, atol=1e-13)


def test_a_column_of_labels_with_two_plates_to_choose_from_needs_one_of_them_in_the_rows():
    z = cv.Categorical("z", [0.5, 0.5], plates=(cv.Plate("person", 4), cv.Plate("column", 3)))
    means = cv.Normal("means", 0, 1, plates=cv.Plate("kind", 2))
    with pytest.raises(
        cv.PlateError, match="'group' could choose from any of the plates 'person', 'column' of 'z'"
    ):
        cv.Normal("y", means[of_record(z)], 1.0, plates=RECORD)


@pytest.mark.slow
def test_a_report_beside_values_of_groups(tmp_path):
    """A value for each group has no rows of its own to be left out."""
    person, kind = cv.Plate("person", 12), cv.Plate("kind", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=person)
    level, other = cv.Normal("level", 0, 0.1, plates=kind), cv.Normal("other", 0, 0.1, plates=kind)
    rng = np.random.default_rng(0)
    groups = rng.integers(12, size=80)
    data = {"y": rng.normal(4.0 * (groups % 2)), "group": groups, "of group": rng.normal(np.arange(12) % 2)}
    y = cv.Normal("y", level[of_record(z)], 1.0, plates=RECORD)
    posterior = cv.Model(y, cv.Normal("of group", other[z], 1.0, plates=person)).fit(data, seed=0)
    cv.report.write(posterior, tmp_path / "page.html", data)
    assert "Predictions of of group beside what was observed" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("plate", ["person", "kind"])
def test_a_plate_that_is_chosen_from_has_no_rows_of_data(plate):
    with pytest.raises(
        cv.PlateError, match=rf"data_plate='{plate}', but 'level\[z\[group\]\]' of 'y' chooses from it"
    ):
        growth().fit({"y": GROWTH, "group": GROUPS, "time": TIME}, data_plate=plate)


def test_the_rows_are_the_records_also_where_there_are_more_groups():
    person, few = cv.Plate("person", 20), cv.Plate("few", 10)
    z = cv.Categorical("z", [0.4, 0.6], plates=person)
    means = cv.Constant("means", [-1.0, 1.0], plates=cv.Plate("kind", 2))
    others = cv.Constant("others", [2.0, 0.0], plates=cv.Plate("other kind", 2))
    y = cv.Normal("y", means[z[cv.Data("group", plates=few)]], 1.0, plates=few)
    rng = np.random.default_rng(0)
    data = {"y": rng.normal(size=10), "group": rng.integers(20, size=10), "of group": rng.normal(size=20)}
    posterior = cv.Model(y, cv.Normal("of group", others[z], 1.0, plates=person)).fit(data)
    joint = np.log([0.4, 0.6]) + norm.logpdf(data["of group"][:, None], [2.0, 0.0])
    np.add.at(joint, data["group"], norm.logpdf(data["y"][:, None], [-1.0, 1.0]))
    assert posterior.elbo == pytest.approx(logsumexp(joint, axis=1).sum(), rel=1e-13)


def test_linear_response_with_labels_known_in_part_is_the_slope_of_refitted_means():
    rng = np.random.default_rng(0)
    groups, truth = rng.integers(6, size=60), np.array([0, 1, 0, 1, 0, 1])
    data = {
        "y": rng.normal(1.2 * truth[groups]),
        "group": groups,
        "z": [0, 1, np.nan, np.nan, np.nan, np.nan],
    }

    def fit(moved, **start):
        kind = cv.Plate("kind", 2)
        z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=cv.Plate("person", 6))
        level = cv.Normal("level", [-0.5 + moved, 0.5], 1.0, plates=kind)
        model = cv.Model(cv.Normal("y", level[of_record(z)], cv.Gamma("tau", 2, 2), plates=RECORD))
        return model.fit(data, tol=1e-15, max_iter=5000, **start)

    posterior = fit(0.0)
    start = {"init": {"level": posterior["level"].mean}}
    slope = (fit(1e-3, **start)["level"].mean - fit(-1e-3, **start)["level"].mean) / 2e-3
    response = posterior.linear_response(data)
    np.testing.assert_allclose(response.covariance("level", "level")[0], slope, atol=1e-5)
    rows = {row.index: row for row in response.summary().rows if row.variable == "z"}
    known = [row for index, row in rows.items() if index.startswith(("person 0", "person 1"))]
    assert [row.mean for row in known] == [1, 0, 0, 1]
    # what is known has no standard deviation
    assert not any(row.sd for row in known)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["class", "own"])
@pytest.mark.parametrize("has_effects", [False, True])
def test_a_label_of_an_outer_repetition_is_that_of_a_column_of_numbers(name, has_effects):
    """Also beside a variable of the outer repetitions, which is chosen by the labels of that name without a word."""
    rng = np.random.default_rng(0)
    lists = [rng.normal(size=n) for n in (3, 1, 4, 2, 3)]
    numbers = np.repeat(np.arange(5), [len(own) for own in lists])

    def model(rows, outer, column):
        means = cv.Constant("means", [-1.0, 1.5], plates=cv.Plate("kind", 2))
        mean = means[cv.Categorical("z", [0.3, 0.7], plates=outer)[cv.Data(column, plates=rows)]]
        if has_effects:
            effect = cv.Normal("effect", 0, 1, plates=outer)
            mean = mean + (effect if rows.within else effect[cv.Data("also", plates=rows)])
        return cv.Model(cv.Normal("y", mean, 1.0, plates=rows))

    outer = cv.Plate("class")
    data = (
        {"y": lists}
        if name == "class"
        else {"y": lists, "own": [np.full(len(y), i) for i, y in enumerate(lists)]}
    )
    nested = model(cv.Plate("pupil", within=outer), outer, name).fit(data, tol=1e-12, seed=0, n_restarts=5)
    flat = {"y": np.concatenate(lists), "column": numbers}
    if has_effects:
        flat["also"] = numbers
    long = model(RECORD, cv.Plate("class", 5), "column").fit(flat, tol=1e-12, seed=0, n_restarts=5)
    if not has_effects:
        logits = norm.logpdf(flat["y"][:, None], [-1.0, 1.5])
        joint = np.log([0.3, 0.7]) + np.array([logits[numbers == i].sum(0) for i in range(5)])
        assert long.elbo == pytest.approx(logsumexp(joint, axis=1).sum(), rel=1e-13)
    assert nested.elbo == pytest.approx(long.elbo, rel=1e-9)


def test_one_value_may_choose_beside_rows_that_do_not():
    """A count without plates, whose rate is that of its label: a negative binomial, beside rows of their own."""
    kinds, obs = cv.Plate("kind", 2), cv.Plate("obs")
    rate, z = cv.Gamma("rate", 2, 1, plates=kinds), cv.Categorical("z", [0.25, 0.75])
    leaves = cv.Poisson("x", rate[z]), cv.Normal("y", 0, 1, plates=obs)
    data = {"x": 3, "y": [1.0, 2.0]}
    evidence = nbinom.logpmf(3, 2, 0.5) + norm.logpdf(data["y"]).sum()
    known = cv.Model(*leaves, z).fit({**data, "z": 1})
    assert known.elbo == pytest.approx(evidence + np.log(0.75), rel=1e-12)
    np.testing.assert_allclose(known["rate"].mean, [2.0, 2.5], rtol=1e-12)
    assert cv.Model(*leaves).fit(data, seed=0).elbo <= evidence
