"""Numbers with decimal commas or separators of thousands are recognised, and the query that is named reads them."""

import re

import numpy as np
import pytest

import caviar as cv
from caviar.data import numeric_query, read_table


def refusal(call) -> str:
    with pytest.raises(cv.DataError) as caught:
        call()
    return str(caught.value)


def query_in(message: str) -> str:
    return re.search(r"SELECT .* FROM data", message)[0]


CASES = {
    "decimal": (";", ["60,6", "7", "-0,25"], [60.6, 7, -0.25], "a decimal comma"),
    "below 1": (";", ["0,126", "-0,025", "1,125"], [0.126, -0.025, 1.125], "a decimal comma"),
    "thousands": (";", ["59,500", "1,200,000.5", "12"], [59500, 1200000.5, 12], "separators of thousands"),
    "both": (";", ["1.234,5", "12.000.000", "1,5"], [1234.5, 12e6, 1.5], "separators of thousands"),
    "swiss": (",", ["59'500", "1'000'000", "3"], [59500, 1e6, 3], "separators of thousands"),
    "spaces": (";", ["59 500,5", "1 000", "3"], [59500.5, 1000, 3], "separators of thousands"),
}


@pytest.mark.thinned(6)
@pytest.mark.parametrize("read", [read_table, lambda path: cv.scan(path).to_numpy()], ids=["read", "scan"])
@pytest.mark.parametrize("case", CASES)
def test_the_query_of_the_message_reads_them(tmp_path, case, read):
    delimiter, texts, numbers, what = CASES[case]
    path = tmp_path / "t.csv"
    rows = [f'{row}.5{delimiter}"{text}"{delimiter}"{text}"' for row, text in enumerate(texts)]
    path.write_text("\n".join([f"id{delimiter}a b{delimiter}c", *rows]))
    message = refusal(lambda: read(path))
    assert f"column 'a b' looks like numbers with {what}" in message
    assert f"{texts[0]!r} in row 0, line 2" in message or "'" in texts[0]
    found = read_table(path, sql=query_in(message)).values
    np.testing.assert_array_equal(found[:, 1], numbers)
    np.testing.assert_array_equal(found[:, 2], numbers)


def test_three_digits_after_each_comma_may_be_either(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n" + '"1,125"\n"2,250"\n')
    assert "if the commas are decimal, with '.' in the place of ''" in refusal(lambda: read_table(path))


@pytest.mark.parametrize("texts", [["high", "low"], ["?", "3,5"], ["1,2,3", "2"], ["2024-01-02", "3"]])
def test_other_texts_are_no_numbers(tmp_path, texts):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a", *(f'"{text}"' for text in texts)]))
    assert "looks like" not in refusal(lambda: read_table(path))


def test_too_many_values_that_look_like_numbers_are_not_taken_for_words():
    many = "SELECT 1 AS id, replace((range / 10)::VARCHAR, '.', ',') AS a FROM range(100)"
    message = refusal(lambda: numeric_query(None, "categorical", sql=many))
    assert "column 'a' looks like numbers with a decimal comma" in message


@pytest.mark.parametrize(
    "text", ['[{"a": 1, "b": 2}, {"a": 3, "b": 5}]', '\n{"a": 1, "b": 2}\n{"a": 3, "b": 5}\n']
)
def test_a_file_of_objects_is_told_to_be_json(tmp_path, text):
    path = tmp_path / "it's.json"
    path.write_text(text)
    message = refusal(lambda: read_table(path))
    assert "holds JSON" in message
    query = message.partition("(sql=, --sql): ")[2]
    np.testing.assert_array_equal(read_table(sql=query).values, [[1, 2], [3, 5]])


def test_a_name_with_a_comma_is_told_to_be_quoted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,"Income, kCHF"\n1,2\n3,5\n')
    message = refusal(lambda: read_table(path, columns=["Income", "kCHF"]))
    assert "On the command line a name with a comma is in double quotes: '\"Income, kCHF\"'" in message
    assert "quotes" not in refusal(lambda: read_table(path, columns=["b"]))
