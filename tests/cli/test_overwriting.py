"""A command never writes over what it reads."""

import pytest
from typer.testing import CliRunner

from caviar.cli.app import app


@pytest.mark.usefixtures("figures_of_factors")
def test_fit_and_predict_do_not_overwrite_what_they_read(tmp_path):
    table, model = tmp_path / "a.csv", tmp_path / "m.caviar"
    table.write_text("a,b\n" + "\n".join(f"{i % 7},{(i * i) % 11}" for i in range(40)) + "\n")
    before = table.read_text()
    run = CliRunner().invoke
    assert run(app, ["fit", str(table), "-o", str(model), "--seed", "0", "--quiet"]).exit_code == 0
    saved = model.read_bytes()
    for arguments in (
        ["predict", str(model), str(table), "-o", str(table)],
        ["fit", str(table), "-o", str(table)],
    ):
        result = run(app, arguments)
        assert result.exit_code == 2
        assert "cannot write" in result.output
    assert table.read_text() == before
    assert model.read_bytes() == saved
