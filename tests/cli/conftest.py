"""What the tests of the command line share: running it, and tables on disk."""

import subprocess
import sys
from functools import cache

import duckdb
import pytest
import thinning
import typer.testing
from typer.testing import CliRunner

import caviar as cv
from caviar.cli.app import app
from caviar.data import write_table


@pytest.fixture(scope="module", autouse=True)
def commands_made_once():
    """Make the commands of the application once; the runner of Typer makes them again for every line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(typer.testing._get_command))
        yield


@pytest.fixture(scope="module", autouse=True)
def one_database():
    """Open one database of DuckDB in `make test`, with a connection for each table: to open it takes 15 ms."""
    if thinning.is_whole:
        yield
        return
    settings = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    with duckdb.connect(config=settings) as database, pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", lambda config: database.cursor())
        yield


@pytest.fixture(scope="session")
def run():
    """Return a function that runs the command line in this process."""

    def invoke(*arguments, **keywords):
        words = [str(argument) for argument in arguments]
        result = CliRunner().invoke(app, words, prog_name="caviar", **keywords)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def run_program():
    """Return a function that runs the command line as users do, in a process of its own."""

    def invoke(*arguments, **keywords):
        command = [sys.executable, "-m", "caviar", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **keywords)

    return invoke


@pytest.fixture(scope="session")
def eruptions(tmp_path_factory):
    """Return a CSV file with the eruptions of Old Faithful, and a column of text besides."""
    faithful = cv.datasets.load_faithful()
    path = tmp_path_factory.mktemp("tables") / "eruptions.csv"
    columns = {name: faithful.column(name) for name in faithful.columns}
    names = ["short" if eruption < 3 else "long" for eruption in columns["eruptions"]]
    write_table(path, {"kind": names, **columns})
    return path


@pytest.fixture(scope="session")
def faithful(tmp_path_factory):
    """Return a Parquet file with the eruptions of Old Faithful."""
    faithful = cv.datasets.load_faithful()
    path = tmp_path_factory.mktemp("tables") / "faithful.parquet"
    write_table(path, {name: faithful.column(name) for name in faithful.columns})
    return path
