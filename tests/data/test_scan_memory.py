"""What a fit from disk holds in memory does not grow with the table."""

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS, COLUMNS = 4_000_000, 8
MIB = 2**20
TABLE = ROWS * COLUMNS * 8 / MIB
"""244 MiB."""

FIT = """
    import sys, warnings
    warnings.simplefilter("ignore")
    import numpy as np
    import caviar as cv

    def resident(field):
        return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field)) / 1024

    small, source = sys.argv[1], sys.argv[2]
    scan = lambda path: eval(source, {"cv": cv, "path": path})
    fit = lambda X: cv.BayesianGaussianMixture(2, random_state=0, max_iter=1, n_jobs=2).fit(X)
    fit(scan(small + ".small"))
    before = resident("VmRSS")
    mixture = fit(scan(small))
    print(resident("VmHWM") - before)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Names of files with the suffix of their storage, and small ones beside them."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(COLUMNS)]

    def pieces(n_rows):
        for start in range(0, n_rows, 100_000):
            yield rng.standard_normal((min(100_000, n_rows - start), COLUMNS)) + 5 * rng.integers(
                0, 2, (1, 1)
            )

    for suffix, n_rows in (("", ROWS), (".small", 2_000)):
        schema = pa.schema([(name, pa.float64()) for name in names])
        with pq.ParquetWriter(folder / f"groups{suffix}", schema) as groups:
            for rows in pieces(n_rows):
                groups.write_table(pa.table(dict(zip(names, rows.T, strict=True))))
        whole = np.concatenate(list(pieces(n_rows)))
        pq.write_table(
            pa.table(dict(zip(names, whole.T, strict=True))), folder / f"one{suffix}", row_group_size=10**9
        )
    return folder


def peak(path, source):
    code = [sys.executable, "-c", textwrap.dedent(FIT), str(path), source]
    found = subprocess.run(code, capture_output=True, text=True, check=False)
    assert not found.returncode, found.stderr
    return float(found.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("groups", "cv.scan(path, copy=False)"),
        pytest.param("groups", "cv.scan(path, copy=True)", marks=pytest.mark.slow),
        # one row group of the whole table: pages are decoded one after another
        pytest.param("one", "cv.scan(path)", marks=pytest.mark.slow),
        pytest.param(
            "groups", "cv.scan(sql=f\"select * from read_parquet('{path}')\")", marks=pytest.mark.slow
        ),
    ],
)
def test_the_peak_is_far_below_the_table(name, source, path):
    """Above the same fit of a small table, which has loaded and allocated all that a fit does."""
    assert peak(path / name, source) < 0.8 * TABLE


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_measure_sees_a_table_that_is_read_whole(path):
    assert peak(path / "groups", "cv.scan(path).to_numpy()[:1_000]") > 0.9 * TABLE
