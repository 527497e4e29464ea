"""What a fit from disk holds in memory does not grow with the table."""

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thinning import amount

ROWS, COLUMNS = amount(1_000_000, 4_000_000), 8
THREADS = amount(1, 2)
GROUP = ROWS // 50
"""Rows that are read at once: with one thread a fit takes 30 MiB."""
MIB = 2**20
TABLE = ROWS * COLUMNS * 8 / MIB
"""61 or 244 MiB."""

FIT = """
    import sys, warnings
    warnings.simplefilter("ignore")
    import numpy as np
    import caviar as cv

    def resident(field):
        return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field)) / 1024

    small, source, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    scan = lambda path: eval(source, {"cv": cv, "path": path})
    fit = lambda X: cv.BayesianGaussianMixture(2, random_state=0, max_iter=1, n_jobs=threads).fit(X)
    fit(scan(small + ".small"))
    before = resident("VmRSS")
    mixture = fit(scan(small))
    print(resident("VmHWM") - before)
"""


def pieces(n_rows):
    rng = np.random.default_rng(0)
    for start in range(0, n_rows, GROUP):
        rows = rng.standard_normal((min(GROUP, n_rows - start), COLUMNS)) + 5 * rng.integers(0, 2, (1, 1))
        yield pa.table({f"x{j}": column for j, column in enumerate(rows.T)})


def written(folder, name, write):
    """Return the name of a large file, beside which there is a small one."""
    for suffix, n_rows in (("", ROWS), (".small", 2_000)):
        write(folder / f"{name}{suffix}", pieces(n_rows))
    return folder / name


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    def write(path, tables):
        first = next(tables)
        with pq.ParquetWriter(path, first.schema) as file:
            for table in (first, *tables):
                file.write_table(table)

    return written(tmp_path_factory.mktemp("large"), "groups", write)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    def write(path, tables):
        pq.write_table(pa.concat_tables(tables).combine_chunks(), path, row_group_size=10**9)

    return written(tmp_path_factory.mktemp("large"), "one", write)


def peak(path, source):
    code = [sys.executable, "-c", textwrap.dedent(FIT), str(path), source, str(THREADS)]
    found = subprocess.run(code, capture_output=True, text=True, check=False)
    assert not found.returncode, found.stderr
    return float(found.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("groups", "cv.scan(path, copy=False)"),
        ("groups", "cv.scan(path, copy=True)"),
        # one row group of the whole table: pages are decoded one after another
        ("one", "cv.scan(path)"),
        ("groups", "cv.scan(sql=f\"select * from read_parquet('{path}')\")"),
    ],
)
def test_the_peak_is_far_below_the_table(name, source, request):
    """Above the same fit of a small table, which has loaded and allocated all that a fit does."""
    assert peak(request.getfixturevalue(name), source) < 0.8 * TABLE


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_measure_sees_a_table_that_is_read_whole(groups):
    assert peak(groups, "cv.scan(path).to_numpy()[:1_000]") > 0.9 * TABLE
