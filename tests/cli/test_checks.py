"""``caviar check``: each kind of saved model is stated again for rows of a table, and verified as the library does."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

import caviar as cv
from caviar.data import write_table

pytestmark = pytest.mark.usefixtures("figures_of_factors")

RNG = np.random.default_rng(0)
STATES = np.arange(90) // 15 % 2
DAYS = {
    "subject": np.repeat(["ann", "bob", "cal"], 30),
    "x": RNG.normal(5.0 * STATES, 1.0),
    "weather": np.array(["dry", "wet"])[STATES],
}
SCHOOL = np.repeat(["Adams", "Lincoln", "Taft", "Wells"], 20)
HOURS = RNG.normal(size=80)
POINTS = 1 + 2 * HOURS + np.repeat([-1.0, 0.0, 0.5, 1.0], 20) + RNG.normal(size=80)
PUPILS = {"points": POINTS, "hours": HOURS, "school": SCHOOL, "passed": (POINTS > 1).astype(int)}
WORDS = ["goal", "ball", "vote", "law", "never"]
TOPIC = RNG.integers(2, size=40)
COUNTS = np.column_stack(
    [RNG.poisson(np.where(k // 2 == TOPIC, 6.0, 0.3)) for k in range(4)] + [np.zeros(40)]
)


def gaps(values, places):
    """Return values with some missing."""
    found = np.array(values, dtype=object)
    found[places] = None
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checks")
    write_table(folder / "days.csv", DAYS)
    write_table(folder / "pupils.csv", PUPILS)
    write_table(folder / "words.csv", dict(zip(WORDS, COUNTS.T, strict=True)))
    save_npz(folder / "words.npz", csr_array(COUNTS))
    return folder


@pytest.fixture(scope="module")
def stated(folder):
    """Return files of posteriors: rows by themselves, rows in the order of time, and groups with their own rows."""
    known = np.column_stack([np.ones(80), HOURS])
    cv.models.linear_regression(2).fit({"X": known, "y": POINTS}, seed=0).save(folder / "regression.caviar")
    write_table(
        folder / "regression.csv", {"X_0": known[:, 0], "X_1": known[:, 1], "y": gaps(POINTS, [3, 4])}
    )
    chain = cv.models.gaussian_hidden_markov_model(1, 2).fit({"x": DAYS["x"][:, None]}, seed=0)
    chain.save(folder / "chain.caviar")
    write_table(folder / "chain.csv", {"x_0": gaps(DAYS["x"], [20])})
    scale = cv.Gamma("scale", 2, 2)
    times = cv.Plate("time", 40)
    cv.Model(cv.Normal("x", cv.Normal("level", 0, 1), scale, plates=times)).fit(
        {"x": POINTS[:40]}, seed=0
    ).save(folder / "sized.caviar")
    write_table(folder / "sized.csv", {"x": POINTS[:40]})
    write_table(folder / "sized-gaps.csv", {"x": gaps(POINTS[:40], [5])})
    return folder


HMM = ("--model", "hmm", "--columns", "x", "--sequence", "subject")
FITS = {
    "hmm": ("days.csv", HMM),
    "categories": ("days.csv", (*HMM[:3], "weather", *HMM[4:], "--emission", "categorical")),
    "mixed": ("pupils.csv", ("--formula", "points ~ hours + (1 | school)")),
    "binary": ("pupils.csv", ("--formula", "passed ~ hours + (1 | school)", "--family", "bernoulli")),
    "topics": ("words.csv", ("--model", "topics", "-k", 2)),
}


@pytest.fixture(scope="module")
def saved(run, folder):
    """Return a function that fits a kind of model, once, and returns its file."""
    made = {}

    def file_of(kind):
        if kind not in made:
            table, options = FITS[kind]
            made[kind] = folder / f"{kind}.caviar"
            done = run("fit", folder / table, *options, "--seed", 0, "-q", "-o", made[kind])
            assert done.exit_code == 0, done.stderr
        return made[kind]

    return file_of


@pytest.fixture
def seen(monkeypatch):
    """Return what is verified, which is not verified here."""
    found = {}

    def check_model(model, data, **keywords):
        found.update(model=model, data=data, **keywords)
        return cv.testing.VerificationReport(())

    monkeypatch.setattr(cv.testing, "check_model", check_model)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS)
def test_every_fit_of_the_command_line_passes(run, folder, saved, kind):
    result = run("check", saved(kind), folder / FITS[kind][0], "--rows", 40)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert result.stdout.count("passed  ") == 4
    assert "What the fit reports is true of these rows." in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["regression", "chain", "sized"])
def test_posteriors_of_stated_models_pass(run, stated, name):
    document = json.loads(
        run("check", stated / f"{name}.caviar", stated / f"{name}.csv", "--rows", 30, "--json").stdout
    )
    assert document["passed"]
    assert [own["name"] for own in document["checks"]] == ["ascent", "stationarity", "saddle", "elbo"]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", ["categories", "binary"])  # the others are looked at more closely below
def test_the_model_is_that_of_the_fit(run, folder, saved, seen, kind):
    done = run("check", saved(kind), folder / FITS[kind][0], "--rows", 40, "--json", "--seed", 3)
    assert done.exit_code == 0, done.stderr
    fitted = cv.load(saved(kind)).posterior_.model
    for name, own in fitted.variables.items():
        assert type(seen["model"].variables[name]) is type(own)
    assert seen["seed"] == 3


def test_sequences_stay_together(run, folder, saved, seen):
    done = run("check", saved("hmm"), folder / "days.csv", "--rows", 40)
    assert "checking on 40 of 90 rows; in 2 sequences" in done.stderr
    values, starts = np.ravel(seen["data"]["x"]), np.flatnonzero(seen["data"]["starts"])
    begins = [int(np.flatnonzero(DAYS["x"] == values[start])[0]) for start in starts]
    assert set(begins) < {0, 30, 60}
    parts = np.split(values, starts[1:])
    for begin, part in zip(begins, parts, strict=True):
        np.testing.assert_array_equal(part, DAYS["x"][begin : begin + len(part)])


def test_missing_rows_divide_a_sequence(run, folder, saved, seen):
    write_table(folder / "gaps.csv", {"subject": DAYS["subject"], "x": gaps(DAYS["x"], [10, 11])})
    done = run("check", saved("hmm"), folder / "gaps.csv")
    assert (
        "checking on 88 of 90 rows; 2 rows with missing entries are left out; in 4 sequences" in done.stderr
    )
    np.testing.assert_array_equal(np.flatnonzero(seen["data"]["starts"]), [0, 10, 28, 58])


def test_pupils_are_chosen_with_their_schools(run, folder, saved, seen):
    rows = {**PUPILS, "school": gaps(SCHOOL, [0]), "other": gaps(POINTS, list(range(80)))}
    write_table(folder / "less.csv", rows)
    done = run("check", saved("mixed"), folder / "less.csv", "--rows", 50)
    assert "checking on 50 of 80 rows; 1 row with missing entries is left out" in done.stderr
    response = next(leaf.name for leaf in seen["model"].leaves)
    assert set(np.ravel(seen["data"][response])) < set(POINTS[1:])
    assert any("school" in part for group in seen["factors"] for part in group)
    refused = run("check", saved("mixed"), folder / "days.csv")
    assert refused.exit_code == 2
    assert "the data lack columns points, hours, school of the formula" in refused.stderr


@pytest.mark.parametrize("name", ["words.csv", "words.npz"])
def test_words_of_documents_are_taken_one_by_one(run, folder, saved, seen, name):
    done = run("check", saved("topics"), folder / name, "--rows", 10)
    document, word = seen["data"]["document"], seen["data"]["word"].astype(int)
    assert f"checking on {len(word):,} words of 10 of 40 documents" in done.stderr
    # one of the five words is in no document
    own = np.zeros((10, 4))
    np.add.at(own, (document, word), 1)
    there = {tuple(row) for row in COUNTS[:, :4]}
    assert {tuple(row) for row in own} <= there


def test_counts_that_are_no_whole_numbers_are_refused(run, folder, saved):
    save_npz(folder / "half.npz", csr_array(COUNTS / 2))
    refused = run("check", saved("topics"), folder / "half.npz")
    assert refused.exit_code == 2
    assert "counts must be whole numbers" in refused.stderr


def test_many_words_are_thinned():
    from caviar.cli.models.checked import words_of_documents

    counts = csr_array(np.full((3, 2), 1_500))
    document, word = words_of_documents(counts, 2, 0)
    assert (len(document), document.max(), word.max()) == (2_000, 0, 1)
    document, _ = words_of_documents(csr_array(np.full((3, 2), 600)), 3, 0)
    assert np.bincount(document).tolist() != [1_200, 1_200, 1_200]
    assert len(document) == 2_000


def test_rows_of_a_stated_model_are_chosen_at_random(run, stated, seen):
    done = run("check", stated / "regression.caviar", stated / "regression.csv", "--rows", 30)
    assert "checking on 30 of 80 rows; 2 rows with missing entries are left out" in done.stderr
    assert seen["data"]["X"].shape == (30, 2)
    assert set(seen["data"]["y"]) < set(np.delete(POINTS, [3, 4]))


def test_of_a_chain_the_longest_part_is_taken(run, stated, seen):
    run("check", stated / "chain.caviar", stated / "chain.csv", "--rows", 30)
    np.testing.assert_array_equal(np.ravel(seen["data"]["x"]), DAYS["x"][21:51])


def test_rows_that_belong_together_are_all_taken(run, stated, seen):
    done = run("check", stated / "sized.caviar", stated / "sized.csv", "--rows", 30)
    assert "checking on all 40 rows, which belong together" in done.stderr
    assert len(seen["data"]["x"]) == 40
    refused = run("check", stated / "sized.caviar", stated / "sized-gaps.csv")
    assert refused.exit_code == 2
    assert "x has missing entries, and the check takes whole rows" in refused.stderr
    assert "caviar.testing.check_model(model, model.simulate(seed))" in refused.stderr
