"""Topics from the command line: of text files, a column of texts, a table of counts, and counts of SciPy alike."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz
from thinning import amount

import caviar as cv
from caviar.cli.options.kinds import KINDS, ModelName
from caviar.data import count_words, read_table, write_table

SPORT = ("The goal of the ball game", "a goal, a ball, a GOAL", "game ball")
LAW = ("The vote on the law", "law, vote, law", "a vote; law!")
TEXTS = [*SPORT, *LAW] * 4
WORDS = ("ball", "game", "goal", "law", "vote")
ARGUMENTS = {
    "doc_topic_prior": 0.1,
    "topic_word_prior": 0.01,
    "random_state": 0,
    "n_init": 3,
    "max_iter": 500,
}
OPTIONS = ("--model", "topics", "-k", 2, "--doc-topic-prior", 0.1, "--topic-word-prior", 0.01, "--seed", 0)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Return a folder with the same documents in four forms."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "texts").mkdir()
    for number, text in enumerate(TEXTS):
        (folder / "texts" / f"{number:02d}.txt").write_text(text, encoding="utf-8")
    (folder / "lines.txt").write_text("\n\n".join(TEXTS), encoding="utf-8")
    (folder / "words.txt").write_text("\n".join(WORDS), encoding="utf-8")
    write_table(folder / "table.csv", {"number": np.arange(24), "text": TEXTS})
    counts = count_words(TEXTS, vocabulary=WORDS).counts
    write_table(folder / "halves.csv", {"goal": [1, 0, 3], "width": [2, 0.5, 1]})
    write_table(folder / "counts.csv", dict(zip(WORDS, counts.toarray().T, strict=True)))
    save_npz(folder / "counts.npz", csr_array(counts))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        ["texts"],
        ["texts/*.txt"],
        ["lines.txt"],
        ["table.csv", "--text", "text"],
        ["counts.csv"],
        ["counts.npz", "--vocabulary", "words.txt"],
        ["texts", "--vocabulary", "words.txt"],
    ],
    ids=lambda where: " ".join(where),
)
def test_all_forms_of_the_documents_give_the_topics_of_the_estimator(
    run, corpus, monkeypatch, tmp_path, where
):
    monkeypatch.chdir(corpus)
    result = run("fit", *where, *OPTIONS, "--restarts", 3, "-o", tmp_path / "m.caviar", "--json", "-q")
    assert (result.exit_code, result.stderr) == (0, "")
    mine = cv.LatentDirichletAllocation(2, **ARGUMENTS).fit(count_words(TEXTS, vocabulary=WORDS).counts)
    told = json.loads(result.stdout)
    assert told["elbo"] == pytest.approx(mine.elbo_, abs=1e-9)
    assert (told["rows"], told["words"]) == (24, 5)
    assert {frozenset(list(topic["words"])[:2]) for topic in told["topics"]} <= {
        frozenset(pair) for pair in (("ball", "goal"), ("law", "vote"))
    }
    assert "caviar fit" in told["command"]
    assert "--model topics --doc-topic-prior 0.1" in told["command"].replace(" --text text", "").replace(
        " --vocabulary words.txt", ""
    )
    loaded = cv.load(tmp_path / "m.caviar")
    assert tuple(loaded.vocabulary_) == WORDS


@pytest.fixture(scope="module")
def model(run, corpus):
    path = corpus / "m.caviar"
    result = run("fit", corpus / "texts", *OPTIONS, "-o", path)
    assert result.exit_code == 0
    assert "24 documents, 60 words, of which 5 are different; left out 29% of all" in result.stderr
    return path


def test_words_of_topics_are_printed(run, model):
    shown = run("show", model).stdout
    assert shown.startswith("latent Dirichlet allocation, 2 topics of 5 words, 24 documents")
    assert "law, vote" in shown
    assert f"fitted to {model.parent / 'texts'}" in shown


def test_new_texts_get_their_names_and_the_proportions_of_the_estimator(run, model, corpus, tmp_path):
    run("predict", model, corpus / "texts", "-o", tmp_path / "out.csv", "-q")
    names = cv.data.read_columns(tmp_path / "out.csv", columns=["document"]).column(0).to_pylist()
    assert names[:2] == ["00.txt", "01.txt"]
    written = read_table(tmp_path / "out.csv", columns=["topic", "topic_0", "topic_1"]).values
    shares = cv.load(model).transform(count_words(TEXTS, vocabulary=WORDS).counts)
    np.testing.assert_allclose(written[:, 1:], shares)
    np.testing.assert_array_equal(written[:, 0], shares.argmax(axis=1))


def test_texts_of_other_words_are_told(run, model, tmp_path):
    (tmp_path / "new.txt").write_text("A goal of Schrödinger's cat was open\n", encoding="utf-8")
    result = run("predict", model, tmp_path / "new.txt", "-o", tmp_path / "out.csv")
    assert "the model knows 17% of the words" in result.stderr
    assert read_table(tmp_path / "out.csv").values.shape == (1, 3)


def test_a_column_of_texts_is_found_again(run, corpus, tmp_path):
    path = tmp_path / "m.caviar"
    run("fit", corpus / "table.csv", "--text", "text", *OPTIONS, "-o", path, "-q")
    for source in ("table.csv", "texts", "counts.csv", "counts.npz"):
        result = run("predict", path, corpus / source, "-o", tmp_path / f"{source}.parquet", "-q")
        assert (result.exit_code, result.stderr) == (0, "")
    one, *others = (
        read_table(tmp_path / f"{source}.parquet", columns=["topic_0"]).values
        for source in ("table.csv", "texts", "counts.csv", "counts.npz")
    )
    for other in others:
        np.testing.assert_array_equal(one, other)
    write_table(tmp_path / "other.csv", {"review": TEXTS})
    result = run("predict", path, tmp_path / "other.csv", "-o", "-")
    assert result.exit_code == 2
    assert "has no column 'text' of texts; its columns are review" in result.stderr
    result = run("report", path, corpus / "table.csv", "-o", tmp_path / "r.html")
    assert result.exit_code == 0


def test_missing_texts_are_documents_without_words(run, tmp_path):
    write_table(tmp_path / "a.parquet", {"text": ["goal ball", None, "ball goal"]})
    arguments = ("--text", "text", *OPTIONS, "--stop-words", "none", "-q", "--json")
    assert json.loads(run("fit", tmp_path / "a.parquet", *arguments).stdout)["rows"] == 3


def test_stop_words_and_rare_words_are_chosen(run, corpus, tmp_path):
    (tmp_path / "stop.txt").write_text("Goal\nthe\n", encoding="utf-8")
    for options, words in (
        (("--stop-words", "none"), 8),
        (("--stop-words", tmp_path / "stop.txt"), 6),
        (("--max-words", 2), 2),
        (("--min-documents", 13), None),
    ):
        result = run("fit", corpus / "texts", *OPTIONS, *options, "-q", "--json")
        if words is None:
            assert result.exit_code == 2
            assert "--min-documents 1 counts words of one document too" in result.stderr
        else:
            assert json.loads(result.stdout)["words"] == words


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("n_documents", "words"), [(19, 19), (20, 0)])
def test_few_documents_keep_the_words_of_one_document(run, tmp_path, n_documents, words):
    letters = [chr(ord("a") + number) * 3 for number in range(n_documents)]
    write_table(tmp_path / "t.csv", {"text": [f"ball {letter}" for letter in letters]})
    told = run("fit", tmp_path / "t.csv", "--text", "text", *OPTIONS, "--max-iter", 1, "-q", "--json").stdout
    assert json.loads(told)["words"] == 1 + words


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (["table.csv"], "or use --text COLUMN, if the column has the documents"),
        (["table.csv", "--text", "txt"], "has no column 'txt' of texts; its columns are number, text"),
        (["counts.csv", "--min-documents", 3], "--min-documents belongs to texts"),
        (["counts.csv", "--vocabulary", "words.txt"], "a table names its words itself"),
        (
            ["halves.csv"],
            "counts of words are whole numbers; column 'width' has 0.5 in row 1. Choose columns",
        ),
        (["texts", "--text", "text"], "--text names a column of a table"),
        (["table.csv", "--text", "text", "--columns", "number"], "--columns chooses columns of counts"),
        (["texts", "--vocabulary", "words.txt", "--max-words", 3], "those to count are in --vocabulary"),
        (["counts.npz", "--vocabulary", "lines.txt"], "--vocabulary has 24: give one for each"),
        (["texts", "--covariance", "diag"], "--covariance belongs to --model bayesian or em or hmm"),
        (["texts", "--uncertainty", "linear-response"], "linear response of topics is not asked for here"),
        (["texts", "--encoding", "utf-9"], "encoding must be the name of one"),
        (["empty"], "holds no"),
    ],
)
def test_what_topics_do_not_have_is_refused(run, corpus, monkeypatch, where, words):
    monkeypatch.chdir(corpus)
    (corpus / "empty").mkdir(exist_ok=True)
    result = run("fit", *where, *(OPTIONS if "-k" not in where else ("--model", "topics")))
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_options_of_topics_belong_to_topics(run, corpus):
    result = run("fit", corpus / "counts.csv", "--text", "text")
    assert "--text belongs to --model topics, not to --model bayesian" in result.stderr
    result = run("fit", corpus / "texts")
    assert "for the words of its text files say --model topics" in result.stderr


@pytest.fixture
def at_most_six(monkeypatch):
    """Let a search begin from six topics, for time."""
    monkeypatch.setitem(KINDS[ModelName.TOPICS].automatic, "n_components", 6)


@pytest.mark.usefixtures("at_most_six")
def test_the_number_of_topics_is_found(run, corpus, tmp_path):
    path = tmp_path / "m.caviar"
    result = run(
        "fit",
        corpus / "texts",
        *OPTIONS[:2],
        "-k",
        "auto",
        "--seed",
        0,
        "--topic-word-prior",
        0.1,
        "-o",
        path,
    )
    assert result.exit_code == 0
    assert result.stdout.startswith("latent Dirichlet allocation, 2 topics (found; at most 6) of 5 words")
    told = json.loads(run("show", path, "--json").stdout)
    assert sorted(sorted(topic["words"], key=topic["words"].get)[-2:] for topic in told["topics"]) == [
        ["ball", "goal"],
        ["vote", "law"],
    ]
    run("predict", path, corpus / "texts", "-o", tmp_path / "out.csv", "-q")
    columns = cv.data.read_columns(tmp_path / "out.csv").column_names
    assert columns == [
        "document",
        "topic",
        *(f"topic_{k}" for k in sorted(own["topic"] for own in told["topics"])),
    ]


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.usefixtures("at_most_six")
def test_numbers_of_topics_are_compared(run, corpus, tmp_path):
    is_auto = amount(0, 1)
    arguments = (
        "--model",
        "topics",
        "-k",
        ("1,2", "1,2,auto")[is_auto],
        "--held-out",
        0.25,
        "--restarts",
        2,
        "-o",
        tmp_path / "best.caviar",
    )
    result = run("compare", corpus / "texts", *arguments, "--json", "-q")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    rows = found["rows"]
    assert [row["n_components"] for row in rows] == [1, 2, 2][: 2 + is_auto]
    counts = count_words(TEXTS, vocabulary=WORDS).counts
    mine = cv.LatentDirichletAllocation(2, random_state=0, n_init=2, max_iter=500).fit(counts)
    assert rows[1]["elbo"] == pytest.approx(mine.elbo_, abs=1e-9)
    assert found["best"] == int(np.argmax([row["elbo"] for row in rows]))
    assert cv.load(tmp_path / "best.caviar").elbo_ == pytest.approx(rows[found["best"]]["elbo"])
    # Words of two subjects: two topics tell the other half of a document better than one.
    assert rows[1]["perplexity"] < rows[0]["perplexity"] < 5.5
    saved = run("compare", corpus / "texts", "--model", tmp_path / "best.caviar", "--json")
    told = json.loads(saved.stdout)["rows"][0]
    assert told["perplexity"] == pytest.approx(
        cv.load(tmp_path / "best.caviar").completion_perplexity(counts)
    )
    assert "lower is better" in run("compare", corpus / "texts", *arguments[:6], "-q").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "topics", "--covariance", "diag"], "not to --model topics"),
        (["--model", "topics", "--non-numeric", "drop"], "--text COLUMN holds the documents"),
        (["--text", "text"], "--text belongs to --model topics"),
        (["--model", "topics", "--held-out", "0.001", "-k", "1"], "leaves none on one side"),
    ],
)
def test_what_cannot_be_compared_is_refused(run, corpus, options, words):
    result = run("compare", corpus / "texts", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


@pytest.mark.thinned(2)
@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize("where", [["counts.csv"], ["counts.npz", "--vocabulary", "words.txt"]])
def test_columns_of_words_are_found_by_name(run, corpus, monkeypatch, tmp_path, where):
    """A table with the words in another order has the same topics; one without a word is refused."""
    monkeypatch.chdir(corpus)
    run("fit", *where, *OPTIONS, "-o", tmp_path / "m.caviar", "-q")
    counts = read_table("counts.csv")
    turned = dict(zip(reversed(counts.columns), counts.values.T[::-1], strict=True))
    write_table(tmp_path / "turned.csv", turned)
    for name in ("counts.csv", tmp_path / "turned.csv"):
        run("predict", tmp_path / "m.caviar", name, "-o", tmp_path / f"{len(str(name))}.csv", "-q")
    found, again = (read_table(path).values for path in sorted(tmp_path.glob("[0-9]*.csv")))
    np.testing.assert_array_equal(found, again)
    del turned["vote"]
    write_table(tmp_path / "fewer.csv", turned)
    refused = run("predict", tmp_path / "m.caviar", tmp_path / "fewer.csv", "-o", tmp_path / "no.csv")
    assert refused.exit_code == 2
    assert "has no column 'vote'" in refused.stderr


def test_counts_that_say_nothing_are_refused_in_words(run, tmp_path):
    write_table(tmp_path / "below.csv", {"goal": [1, 2, 0], "law": [0, -1, 3]})
    refused = run("fit", tmp_path / "below.csv", "--model", "topics", "-q")
    assert refused.exit_code == 2
    assert "error: the table has -1 in row 1, column 1" in refused.stderr
    write_table(tmp_path / "none.csv", {"goal": [0, 0], "law": [0, 0]})
    refused = run("fit", tmp_path / "none.csv", "--model", "topics", "-q", "--json")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == "error: there is no word in the documents: all counts are 0\n"


def test_a_frame_with_the_words_in_another_order_is_refused():
    pandas = pytest.importorskip("pandas")
    counts = count_words(TEXTS, vocabulary=WORDS).counts.toarray()
    lda = cv.LatentDirichletAllocation(2, vocabulary=list(WORDS), random_state=0, max_iter=3, tol=1e9).fit(
        counts
    )
    frame = pandas.DataFrame(counts, columns=WORDS)
    with pytest.raises(cv.DataError, match=r"in another order; pass X\[estimator.vocabulary\]"):
        lda.transform(frame[list(reversed(WORDS))])


def test_texts_may_have_other_endings(run, tmp_path):
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number:02d}.md").write_text(text, encoding="utf-8")
    found = run("fit", tmp_path / "*.md", *OPTIONS, "-q")
    assert found.exit_code == 0
    assert "24 documents" in found.stdout
    refused = run("fit", tmp_path, *OPTIONS, "-q")
    assert refused.exit_code == 2
    assert f"for texts with another ending write '{tmp_path}/*.md'" in refused.stderr


def test_data_without_a_document_are_refused(run, corpus, tmp_path, monkeypatch):
    """Predictions ended with scikit-learn's error and a traceback."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    for where, other, told in (
        (
            [corpus / "lines.txt"],
            ["empty.txt"],
            "error: empty.txt has no document: each line with a word is one",
        ),
        (
            [corpus / "table.csv", "--text", "text"],
            ["--sql", "SELECT 'goal' AS text WHERE false"],
            "error: the query has no rows, so there is no document",
        ),
    ):
        assert run("fit", *where, *OPTIONS, "--max-iter", 5, "-o", "m.caviar", "-q").exit_code == 0
        predicted = run("predict", "m.caviar", *other, "-o", "p.csv")
        assert predicted.exit_code == 2
        assert told in predicted.stderr
