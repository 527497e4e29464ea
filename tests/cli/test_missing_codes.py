"""``caviar fit`` warns of numbers that probably mean missing values, and says which query makes them missing."""

import numpy as np

from caviar.data import write_table


def test_the_command_line_tells_the_query_that_makes_it_missing(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    size = np.random.default_rng(0).normal(50, 10, 80).round(2)
    size[:5] = -999
    write_table("t.csv", {"kind": np.array(["a", "b"] * 40), "size": size})
    for how in (["--columns", "size"], ["--non-numeric", "categorical"]):
        result = run("fit", "t.csv", *how, "--components", 1, "--seed", 0, "-q", "--json")
        assert result.exit_code == 0
        query = """SELECT * REPLACE (nullif("size", -999) AS "size") FROM data"""
        assert result.stderr.count("-999 in 5 rows") == 1
        assert f"make it empty: --sql '{query}'" in result.stderr
    mended = run("fit", "t.csv", "--columns", "size", "--sql", query, "--components", 1, "--seed", 0, "-q")
    assert "5 missing entries" in mended.stdout
    assert "999" not in mended.stderr
