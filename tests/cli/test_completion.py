"""The shell completes commands, options and their values: bash by its own function, zsh and fish by what they ask."""

import os
import shutil
import subprocess
import sys

import pytest

PROGRAM = [sys.executable, "-m", "caviar"]


def asked(**environment):
    """Return what the program answers to a shell."""
    done = subprocess.run(
        PROGRAM, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("caviar co", ["compare"]),
        ("caviar fit x.csv --covariance ", ["full", "tied", "diag", "spherical", "unit"]),
        ("caviar fit x.csv --mod", ["--model"]),
        ("caviar fit x.csv --model ", ["bayesian", "em", "known-variance", "hmm", "topics", "mixed"]),
        ("caviar fit x.csv --model kn", ["known-variance"]),
        ("caviar fit x.csv --family neg", ["negative_binomial"]),
    ],
)
def test_bash_gets_commands_options_and_values(line, answers):
    place = str(len(line.split(" ")) - 1)
    found = asked(_CAVIAR_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=place)
    assert found.split() == answers


@pytest.mark.slow
def test_zsh_and_fish_get_them_with_what_they_mean():
    zsh = asked(_CAVIAR_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="caviar rep")
    assert zsh.startswith('_arguments \'*: :(("report":"Write an HTML report about a model')
    fish = asked(
        _CAVIAR_COMPLETE="complete_fish",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        _TYPER_COMPLETE_ARGS="caviar sam",
    )
    assert fish.startswith("sample\tDraw new rows from a model")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_asks_the_program(shell):
    script = asked(_CAVIAR_COMPLETE=f"source_{shell}")
    assert f"_CAVIAR_COMPLETE=complete_{shell}" in script
    if shutil.which(shell):
        # the shell finds no fault with it
        done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_by_the_function_that_the_script_defines(tmp_path):
    program = tmp_path / "caviar"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m caviar "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = asked(_CAVIAR_COMPLETE="source_bash")
    lines = [
        script,
        "COMP_WORDS=(caviar fit x.csv --emission po)",
        "COMP_CWORD=4",
        f"_caviar_completion {program}",
        'echo "${COMPREPLY[@]}"',
    ]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.stderr) == (["poisson"], "")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("caviar co", ["compare"]),
        ("caviar fit x.csv --covariance d", ["diag"]),
        ("caviar fit x.csv --mod", ["--model"]),
        ("caviar show eru", ["eruptions.caviar"]),
    ],
)
def test_fish_completes_commands_options_values_and_files(tmp_path, line, answers):
    program = tmp_path / "caviar"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m caviar "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "eruptions.caviar").touch()
    (tmp_path / "caviar.fish").write_text(asked(_CAVIAR_COMPLETE="source_fish"), encoding="utf-8")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["fish", "-c", f"source caviar.fish; complete -C '{line}'"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert [found.split("\t")[0] for found in done.stdout.splitlines()] == answers
