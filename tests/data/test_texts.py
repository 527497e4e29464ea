"""Words of texts are counted as scikit-learn counts runs of letters; files are read by name, whole, in any encoding."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

import caviar as cv
from caviar.data import count_words, read_texts

TEXTS = [
    "The goal! A late goal -- Müller's 2nd; the ball was in.",
    "A vote, and a law: the LAW of 2008 wasn't liked.",
    "",
    "ÉTÉ\tété Ete\nball; vote_count vote",
]
LETTERS = r"[^\W\d_]{2,}"


@pytest.mark.parametrize("arguments", [{}, {"min_documents": 2}, {"stop_words": ["the", "was"]}])
def test_words_are_counted_as_scikit_learn_counts_runs_of_letters(arguments):
    names = {"min_documents": "min_df"}
    other = CountVectorizer(
        token_pattern=LETTERS, **{names.get(name, name): value for name, value in arguments.items()}
    ).fit(TEXTS)
    found = count_words(TEXTS, **arguments)
    assert list(found.words) == other.get_feature_names_out().tolist()
    np.testing.assert_array_equal(found.counts.toarray(), other.transform(TEXTS).toarray())
    whole = CountVectorizer(token_pattern=LETTERS).fit_transform(TEXTS).sum()
    assert found.counts.sum() + found.left_out == whole


def test_the_most_frequent_words_are_kept_and_ties_go_by_the_alphabet():
    found = count_words(["bb aa cc", "cc bb", "cc dd"], max_words=2)
    assert found.words == ("bb", "cc")
    assert count_words(["bb aa"], max_words=1).words == ("aa",)


def test_letters_with_marks_of_their_own_are_composed():
    assert count_words(["e\u0301te\u0301"]).words == ("été",)


def test_words_of_a_vocabulary_have_its_order_and_others_are_left_out():
    found = count_words(["goal ball goal", "law"], vocabulary=["law", "never", "goal"])
    np.testing.assert_array_equal(found.counts.toarray(), [[0, 0, 2], [1, 0, 0]])
    assert (found.words, found.left_out) == (("law", "never", "goal"), 1)


def test_a_tokenizer_of_ones_own_is_used():
    assert count_words(["a-b a-b c"], tokenizer=str.split).words == ("a-b", "c")


def test_texts_may_come_one_by_one():
    assert count_words(text for text in TEXTS[:2]).counts.shape[0] == 2


def test_common_words_of_english_are_left_out_by_name():
    found = count_words(["It wasn't the goal that they'd wanted"], stop_words="english")
    assert found.words == ("goal", "wanted")


@pytest.mark.parametrize(
    ("texts", "arguments", "error", "words"),
    [
        ("one text", {}, cv.ParameterError, "several documents"),
        (["goal", None], {}, cv.DataError, "document 1 is not a text: 'None'"),
        (["a 1 2"], {}, cv.DataError, "1 document has no word of two or more letters"),
        (["goal", "vote"], {"min_documents": 2}, cv.DataError, "is in fewer than 2 documents"),
        (["goal"], {"min_documents": 0}, cv.ParameterError, "min_documents must be a whole number"),
        (["goal"], {"max_words": 1.5}, cv.ParameterError, "max_words, if it is not None, must be"),
        (["goal"], {"stop_words": "german"}, cv.ParameterError, "'english', or a list of words"),
        (["goal"], {"vocabulary": ["a", "a"]}, cv.ParameterError, "each word once; got twice: a"),
        (["goal"], {"vocabulary": ["a"], "max_words": 3}, cv.ParameterError, "leave stop_words"),
    ],
)
def test_what_cannot_be_counted_is_refused(texts, arguments, error, words):
    with pytest.raises(error, match=words):
        count_words(texts, **arguments)


def test_texts_of_a_folder_come_in_the_order_of_their_names(tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("b/2.txt", "a.txt", "B.TXT.md", "b/1.txt"):
        (tmp_path / name).write_text(f"text of {name}", encoding="utf-8")
    texts = read_texts(tmp_path)
    assert texts.names == ("a.txt", "b/1.txt", "b/2.txt")
    assert list(texts) == [f"text of {name}" for name in texts.names]
    assert read_texts(tmp_path / "b" / "*.txt").names == tuple(
        str(tmp_path / "b" / f"{n}.txt") for n in (1, 2)
    )
    assert read_texts(tmp_path / "a.txt").names == (str(tmp_path / "a.txt"),)


def test_texts_are_read_in_their_encoding(tmp_path):
    (tmp_path / "a.txt").write_bytes("été".encode("latin-1"))
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbfgoal")
    assert read_texts(tmp_path, encoding="latin-1")[0] == "été"
    assert read_texts(tmp_path)[1] == "goal"
    with pytest.raises(cv.DataError, match=r"a\.txt is not a text in utf-8.*say another encoding="):
        read_texts(tmp_path)[0]
    with pytest.raises(cv.ParameterError, match="encoding must be the name of one"):
        read_texts(tmp_path, encoding="utf-9")


def test_texts_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(cv.DataError, match="holds no text file"):
        read_texts(tmp_path)
    with pytest.raises(cv.DataError, match="there is no file"):
        read_texts(tmp_path / "no.txt")
    with pytest.raises(cv.DataError, match="no file matches"):
        read_texts(tmp_path / "*.txt")
    (tmp_path / "a.txt").write_text("gone", encoding="utf-8")
    texts = read_texts(tmp_path)
    (tmp_path / "a.txt").unlink()
    with pytest.raises(cv.DataError, match=r"cannot read .*a\.txt: No such file"):
        texts[0]
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    with pytest.raises(cv.DataError, match="read_texts, on the command line --model topics"):
        cv.data.read_table(tmp_path)
