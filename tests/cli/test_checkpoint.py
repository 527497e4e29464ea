"""``caviar fit --checkpoint``: the same command again goes on, and says so."""

import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from caviar.data import write_table

pytestmark = [pytest.mark.usefixtures("figures_of_factors"), pytest.mark.starts_of_users]

OPTIONS = ("-k", 6, "--restarts", 2, "--tol", 0, "--max-iter", 40, "--threads", 1)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Return a table whose clusters overlap, so that a fit takes many iterations."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 2)) + rng.integers(0, 4, (4_000, 1)) * [1.2, -0.8]
    path = tmp_path_factory.mktemp("tables") / "rows.csv"
    write_table(path, {"a": X[:, 0], "b": X[:, 1]})
    return path


@pytest.mark.slow
@pytest.mark.posix
def test_a_command_that_was_stopped_goes_on(run, rows, tmp_path):
    command = ["fit", rows, *OPTIONS, "--checkpoint", tmp_path / "run.ckpt"]
    program = [sys.executable, "-m", "caviar", *map(str, command)]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while "iteration 20/40" not in said:
            said = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
    assert process.returncode == 1
    assert "the same command again goes on from the checkpoint" in said
    found = run(*command, "--json")
    assert re.search(r"run\.ckpt: goes on from start [12]/2, iteration \d+", found.stderr)
    undisturbed = json.loads(run("fit", rows, *OPTIONS, "--seed", 0, "--json", "-q").stdout)
    assert json.loads(found.stdout)["elbo_trace"] == undisturbed["elbo_trace"]
    again = run(*command, "--json", "-q")
    assert "checkpoint" not in again.stderr
    assert again.stdout == found.stdout


def test_the_checkpoint_of_another_command_is_an_error_in_words(run, eruptions, tmp_path):
    command = (
        "fit",
        eruptions,
        "--columns",
        "eruptions,waiting",
        "--checkpoint",
        tmp_path / "run.ckpt",
        "-q",
    )
    assert run(*command).exit_code == 0
    told = run("fit", eruptions, "--columns", "eruptions,waiting", "--checkpoint", tmp_path / "run.ckpt")
    assert "this fit has ended; its result is taken from there" in told.stderr
    refused = run(*command, "-k", 3)
    assert refused.exit_code == 2
    assert "is the checkpoint of another fit: its model differs" in refused.stderr
    refused = run(*command, "--seed", 5)
    assert "its seed differs" in refused.stderr
    before = eruptions.read_bytes()
    assert run(*command[:-3], "--checkpoint", eruptions).exit_code == 2
    assert eruptions.read_bytes() == before


SEARCH = ("--columns", "waiting", "-k", "auto", "--seed", 3, "--quiet", "--json")


@pytest.mark.usefixtures("figures_of_factors")
def test_a_search_interrupted_before_its_first_end_says_what_was_kept_and_how_it_goes_on(
    run, eruptions, tmp_path, monkeypatch
):
    def stopped(*arguments):
        raise KeyboardInterrupt

    path, command = tmp_path / "run.ckpt", ("fit", eruptions, *SEARCH)
    with monkeypatch.context() as patch:
        patch.setattr("caviar.fitting.restarts.data_start", stopped)
        without = run(*command)
        kept = run(*command, "--checkpoint", path, "-o", tmp_path / "m.caviar")
    assert (without.exit_code, kept.exit_code) == (1, 1)
    assert without.stderr == (
        "interrupted: there is no result yet; nothing was kept; with --checkpoint FILE a fit goes on where it was "
        "stopped\n"
    )
    again = (
        f"caviar fit {eruptions} --columns waiting --components auto --seed 3 --checkpoint {path} "
        f"-o {tmp_path / 'm.caviar'}"
    )
    assert kept.stderr == (
        f"interrupted: there is no result yet; what was done is in {path}. To go on: {again}\n"
    )
    found = json.loads(run(*again.split()[1:], "--quiet", "--json").stdout)
    assert found["elbo_trace"] == json.loads(run(*command).stdout)["elbo_trace"]
