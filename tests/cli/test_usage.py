"""Bad usage and bad input end with status 2, one message on standard error, and nothing written."""

import os
import re
import sys

import pytest

import caviar as cv


def message_of(result):
    """Return the message of a refusal, without the frame that is drawn around some."""
    assert result.stdout == ""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit"], "expected DATA, a file to read, or --sql QUERY"),
        (["fit", "nope.csv"], "error: there is no file nope.csv"),
        (["fit", "*.nope"], "error: no file matches *.nope"),
        (["fit", "{csv}"], "column 'kind' does not hold numbers"),
        (["fit", "{csv}"], "--columns eruptions,waiting"),
        (["fit", "{csv}", "--model", "hmm"], "or use --sequence COLUMN, if the column has the sequence"),
        (
            ["compare", "{csv}", "--non-numeric", "categorical", "--covariance", "full"],
            "the columns of a component are independent; see caviar compare --help",
        ),
        (["fit", "{csv}", "--columns", "eruption"], "Did you mean 'eruptions'?"),
        (["fit", "{csv}", "--componets", "2"], "no such option --componets; did you mean --components? See"),
        (["fit", "{csv}", "--prior-v", "2"], "did you mean --prior-variance? See"),
        (["fit", "{csv}", "--bogus", "2"], "error: no such option --bogus; see caviar fit --help"),
        (["fit", "{csv}", "--columns", ""], "expected the name of at least one column"),
        (["fit", "{csv}", "--columns", "waiting", "-k", "0"], "--components"),
        (["fit", "{csv}", "--columns", "waiting", "-k", "two"], "a whole number of at least 1, or auto"),
        (["fit", "{csv}", "--columns", "waiting", "--tol", "-1"], "--tol"),
        (["fit", "{csv}", "--columns", "waiting", "--model", "kmeans"], "known-variance"),
        (
            ["fit", "{csv}", "--columns", "waiting", "--variance", "2"],
            "--variance belongs to --model known-variance",
        ),
        (["fit", "{csv}", "--model", "em", "--mean-precision", "joint"], "belongs to --model bayesian"),
        (["fit", "{csv}", "--columns", "waiting", "--model", "em", "-k", "300"], "300 components"),
        (
            ["fit", "{csv}", "--columns", "waiting", "--model", "known-variance", "--variance", "-1"],
            "variance must be",
        ),
        (["fit", "{csv}", "--columns", "waiting", "-o", "nowhere/m.caviar"], "there is no folder nowhere"),
        (["fit", "{csv}", "--columns", "waiting", "-o", "."], "it is a folder"),
        (["fit", "{csv}", "--columns", "waiting", "--picture", "m.gif"], "must end with .png"),
        (["fit", "{csv}", "{csv}"], "unexpected argument: "),
        (["fit", "--sql", "SELEC 1"], 'syntax error at or near "SELEC"; LINE 1: SELEC 1'),
        (["predict", "{csv}", "{csv}", "-o", "out.csv"], "is not a model saved by caviar"),
        (["predict", "nope.caviar", "{csv}", "-o", "out.csv"], "there is no file nope.caviar"),
        (["predict", "nope.caviar", "{csv}", "-o", "out.xlsx"], "must end with .csv, .parquet or .pq"),
        (["predict", "nope.caviar", "{csv}"], "missing option"),
        (["predict", "nope.caviar", "-o", "out.csv"], "expected DATA"),
        (["show", "nope.caviar"], "there is no file nope.caviar"),
        (["show", "{csv}"], "is not a model saved by caviar"),
        (["show"], "missing argument"),
        (["demo", "--output-dir", "{csv}"], "it is a file"),
        (["frobnicate"], "no such command 'frobnicate'"),
        (["--frobnicate"], "no such option --frobnicate"),
        (["fit", "{csv}", "--covariance", "ful"], "'ful' is not one of 'full', 'tied'"),
        (["fit", "{csv}", "--tol", "small"], "--tol: expected a number; see caviar fit --help"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(run, eruptions, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    result = run(*(argument.format(csv=eruptions) for argument in arguments))
    assert result.exit_code == 2
    assert words in message_of(result)
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_written_to_is_refused_before_the_work(
    run, eruptions, tmp_path, monkeypatch
):
    monkeypatch.setattr("caviar.cli.tables.files.os.access", lambda path, mode: path != tmp_path)
    monkeypatch.setattr("caviar.data.read_table", lambda *arguments, **keywords: pytest.fail("it was read"))
    for options in (["-o", tmp_path / "m.caviar"], ["--picture", tmp_path / "m.png"]):
        result = run("fit", eruptions, "--columns", "waiting", *options)
        assert result.exit_code == 2
        assert f"you may not write to the folder {tmp_path}; choose another" in message_of(result)


def test_a_query_that_duckdb_interrupts_ends_like_any_other_interrupt(run, eruptions, monkeypatch):
    def interrupted(*arguments, **keywords):
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr("caviar.data.read_table", interrupted)
    result = run("fit", eruptions)
    assert result.exit_code == 1
    assert message_of(result) == "error: interrupted; nothing was kept"


@pytest.mark.slow
def test_paragraphs_of_a_help_text_are_folded_to_the_terminal(run_program):
    done = run_program("predict", "--help", env={**os.environ, "COLUMNS": "200"})
    assert any(
        "the most probable path, instead of label. For topics they are topic" in line
        for line in done.stdout.splitlines()
    )


def test_help_teaches_by_example(run):
    for command in ("fit", "predict", "show", "demo"):
        result = run(command, "--help")
        assert result.exit_code == 0
        assert "Examples:" in result.stdout
        assert f"caviar {command} " in result.stdout.split("Examples:")[1]


def test_no_arguments_give_the_help(run):
    result = run()
    assert "caviar demo" in result.stdout + result.stderr


def test_the_version_is_printed(run):
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"caviar {cv.__version__}\n")


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("module", "arguments", "packages"),
    [
        ("duckdb", ["fit", "{csv}"], '"duckdb>=1.3" "pyarrow>=17"'),
        ("pyarrow", ["fit", "{csv}"], '"duckdb>=1.3" "pyarrow>=17"'),
        pytest.param(
            *("matplotlib.figure", ["demo", "--output-dir", "out"], '"matplotlib>=3.9"'),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_missing_package_is_named(run, eruptions, tmp_path, monkeypatch, module, arguments, packages):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "caviar.report.pictures", raising=False)
    result = run(*(argument.format(csv=eruptions) for argument in arguments))
    assert result.exit_code == 1
    assert f"python -m pip install {packages}" in result.stderr


def test_a_bug_keeps_its_traceback(run, eruptions, monkeypatch):
    def broken(*arguments, **keywords):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("caviar.data.read_table", broken)
    with pytest.raises(ZeroDivisionError):
        run("fit", eruptions)
