"""Iterations of a fit take the memory that earlier ones have left, not new pages of the system."""

import platform
import subprocess
import sys
import textwrap

import pytest

FIT = """
    import resource, warnings
    import numpy as np
    import caviar as cv

    row, cluster, sample = cv.Plate("row"), cv.Plate("cluster", 20), cv.Plate("sample", 4)
    place = cv.Categorical("place", np.full(100, 0.01), plates=(cluster, sample))
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(20)), plates=row)
    model = cv.Model(cv.Potential("table", place[z], plates=(row, sample)))
    rng = np.random.default_rng(0)
    centres = rng.integers(100, size=(20, 4))[rng.integers(20, size=60)]
    table = -np.square(np.arange(100) - centres[..., None]) / 50 + rng.normal(size=(60, 4, 100))

    warnings.simplefilter("ignore")

    def fit():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        model.fit({"table": table}, init="prior", n_restarts=10, seed=0, max_iter=20, executor=1, swaps=False)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    fit()
    print(fit())
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_a_fit_like_one_before_needs_next_to_no_new_pages():
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FIT)], capture_output=True, text=True, check=True, timeout=300
    )
    # each array of the globals of all starts, of 640 kB, is 160 pages
    assert int(ran.stdout) < 800
