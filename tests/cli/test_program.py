"""The program as users run it: its streams, its exit status, how soon it answers, and how it is stopped."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import caviar as cv
from caviar.data import write_table


def test_help_is_quick_and_needs_no_numpy(run_program):
    program = """
import sys
import caviar.cli.app
print(*(m for m in ("numpy", "scipy", "sklearn", "duckdb", "pyarrow", "matplotlib") if m in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    before = os.times()
    assert run_program("--help").returncode == 0
    after = os.times()
    # its processor time, since others may use the machine
    assert after.children_user + after.children_system - before.children_user - before.children_system < 3


def test_the_command_line_without_its_extra_says_what_to_install():
    program = "import sys; sys.modules['typer'] = None; import caviar.cli; caviar.cli.main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "The command line needs typer; install what it needs by python -m pip install "
    )
    assert '"typer>=0.20"' in done.stderr


@pytest.mark.slow
def test_results_and_progress_go_to_streams_of_their_own(run_program, run, faithful, tmp_path):
    done = run_program(
        "fit", faithful, "-k", 3, "--restarts", 3, "--seed", 0, "--json", "-o", tmp_path / "m.caviar"
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["saved"] == str(tmp_path / "m.caviar")
    lines = done.stderr.splitlines()
    assert 3 <= len(lines) <= 20, "a few lines for a fit, however many iterations it has"
    assert lines[0].startswith("start 1/3  iteration 1/500  ELBO -")
    assert lines[-1].startswith("start 3/3  iteration ")
    assert "\x1b" not in done.stderr
    quiet = run("fit", faithful, "-q", "--seed", 0)
    assert (quiet.exit_code, quiet.stderr) == (0, "")


def test_bad_input_ends_with_status_2_and_without_a_traceback(run_program, tmp_path):
    (tmp_path / "gap.csv").write_text("a,b\n1,2\n3,x\n5,6\n")
    done = run_program("fit", tmp_path / "gap.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "column 'b' has one entry that cannot be read as a number: 'x' in row 1, line 3" in done.stderr


@pytest.mark.slow
def test_a_terminal_that_knows_only_ascii_is_served(run_program, tmp_path):
    write_table(tmp_path / "table.csv", {"größe": np.arange(20.0) ** 2})
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run_program("fit", tmp_path / "table.csv", "-q", "-k", 1, env=environment)
    assert done.returncode == 0
    assert "gr\\xf6\\xdfe" in done.stdout


@pytest.mark.slow
def test_the_demo_shows_the_fit_and_writes_what_it_shows(run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["caviar/__main__.py"])
    done = run("demo", "--output-dir", tmp_path / "out")
    assert (done.exit_code, done.stderr) == (0, "")
    for words in (
        "Old Faithful",
        "<- highest",
        "[95% interval]",
        "ELBO -1168.0563 nats",
        f"{tmp_path}/out/faithful.png",
    ):
        assert words in done.stdout
    assert (tmp_path / "out" / "faithful.png").read_bytes().startswith(b"\x89PNG")
    assert cv.load(tmp_path / "out" / "faithful.caviar").n_components == 2
    # The commands that it proposes work.
    proposed = re.findall(r"^  (?:python -m )?caviar (\w+ .*)$", done.stdout, re.MULTILINE)
    assert [line.split()[0] for line in proposed] == ["show", "report", "fit", "predict"]
    for line in proposed:
        assert run(*line.split()).exit_code == 0


@pytest.mark.usefixtures("figures_of_factors")
def test_programs_are_told_what_the_demo_wrote(run, tmp_path):
    done = run("demo", "--json", "--output-dir", tmp_path / "out")
    told = json.loads(done.stdout)
    assert done.stderr == ""
    assert (told["rows"], told["columns"], told["seed"]) == (272, ["eruptions", "waiting"], 0)
    assert cv.load(told["model"]).elbo_ == told["elbo"]
    assert all((tmp_path / "out" / f"faithful.{suffix}").is_file() for suffix in ("png", "caviar", "csv"))


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_told_in_a_line(tmp_path):
    cv.BayesianGaussianMixture(1, random_state=0).fit(np.eye(3)).save(tmp_path / "m.caviar")
    for command in (["show"], ["sample"], ["show", "--json"])[:3]:
        words = [sys.executable, "-m", "caviar", command[0], str(tmp_path / "m.caviar"), *command[1:]]
        with open("/dev/full", "wb") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == "error: cannot write the result: No space left on device\n"


@pytest.mark.slow
@pytest.mark.posix
def test_a_reader_that_has_gone_away_is_no_error(tmp_path):
    cv.BayesianGaussianMixture(1, random_state=0).fit(np.eye(3)).save(tmp_path / "m.caviar")
    words = [sys.executable, "-m", "caviar", "sample", str(tmp_path / "m.caviar"), "-n", "20000"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b'"x0","x1","x2"\n'
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.fixture(scope="module")
def long_table(tmp_path_factory):
    """Return a table whose fit takes a while: the components overlap."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("long") / "long.parquet"
    write_table(path, {f"c{j}": rng.standard_normal(20_000) for j in range(6)})
    return path


def on_a_terminal(arguments, *, stop_at):
    """Run the command line with its output on a terminal; interrupt it when it has shown some text.

    Returns
    -------
    str, int
        What it showed, and its exit status.
    """
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-m", "caviar", *map(str, arguments)]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown, stopped, deadline = b"", False, time.monotonic() + 60
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    shown += os.read(ours, 65536)
                except OSError:  # the program has ended
                    break
            if not stopped and stop_at in shown:
                process.send_signal(signal.SIGINT)
                stopped = True
        os.close(ours)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
    return shown.decode(), process.returncode


@pytest.mark.slow
@pytest.mark.posix
def test_ctrl_c_keeps_the_best_so_far_and_says_so(long_table, tmp_path):
    model = tmp_path / "m.caviar"
    arguments = ["fit", long_table, "-k", 4, "--tol", 0, "--max-iter", 100_000, "--seed", 0, "-o", model]
    shown, status = on_a_terminal(arguments, stop_at=b"iteration 1")
    assert "Ctrl-C keeps the best so far" in shown
    assert "interrupted: " in shown
    assert status == 1
    mixture = cv.load(model)
    assert mixture.posterior_.status.value == "interrupted"
    assert mixture.n_iter_ >= 1
    assert not any(path.suffix == ".partial" for path in tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.posix
def test_an_interrupt_without_a_terminal_keeps_the_best_so_far_too(long_table, tmp_path):
    command = [
        "fit",
        long_table,
        "-k",
        8,
        "--tol",
        0,
        "--max-iter",
        100_000,
        "--seed",
        0,
        "-o",
        tmp_path / "m.caviar",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "caviar", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        process.stderr.readline()  # the line of the first iteration
        process.send_signal(signal.SIGINT)
        shown, complaints = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "interrupted: the fit was stopped before it settled; the best so far is shown" in complaints
    assert "Bayesian mixture of Gaussians, 8 components, 20,000 rows" in shown
    assert "Traceback" not in complaints
    assert cv.load(tmp_path / "m.caviar").n_components == 8
