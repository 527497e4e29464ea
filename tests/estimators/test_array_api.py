"""Arrays of other libraries give the fit of NumPy, with array_api_dispatch and without it; results are NumPy arrays."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.first_guess

PROGRAM = """
import sys
import numpy as np
import sklearn
import {library} as xp
import caviar as cv

X = cv.datasets.load_faithful().values
gaps = np.where(X > 90, np.nan, X)
weights = np.arange(len(X)) % 3
counts = np.random.default_rng(0).poisson(2.0, (20, 6)).astype(float)
MIXTURES = [
    (cv.BayesianGaussianMixture(2, random_state=0), X),
    (cv.BayesianGaussianMixture(2, random_state=0, init_params="kmeans", covariance_type="diag"), gaps),
    (cv.GaussianMixture(2, random_state=0, means_init=X[:2]), X),
    (cv.KnownVarianceMixture(2, random_state=0), X[:, :1]),
]
METHODS = ("predict", "predict_proba", "transform", "score_samples", "score")
for dispatch in (False, True):
    with sklearn.config_context(array_api_dispatch=dispatch):
        for mixture, rows in MIXTURES:
            plain = sklearn.clone(mixture).fit(rows, sample_weight=weights)
            own = sklearn.clone(mixture).fit(xp.asarray(rows), sample_weight=xp.asarray(weights.astype(float)))
            assert own.elbo_ == plain.elbo_, (mixture, own.elbo_, plain.elbo_)
            assert type(own.means_) is np.ndarray
            for name in METHODS:
                expected, found = getattr(plain, name)(rows), getattr(own, name)(xp.asarray(rows))
                assert type(found) is type(expected), (name, type(found))
                np.testing.assert_array_equal(found, expected)
        lda = cv.LatentDirichletAllocation(2, random_state=0, tol=1.0)
        expected = lda.fit_transform(counts)
        np.testing.assert_array_equal(lda.fit_transform(xp.asarray(counts)), expected)
model = cv.models.normal_wishart_mixture(2, 2)
assert model.fit({{"x": xp.asarray(X)}}, seed=0).elbo == model.fit({{"x": X}}, seed=0).elbo
print("the same")
"""


@pytest.mark.slow
@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_they_give_the_fit_of_numpy(library):
    pytest.importorskip(library)
    # SciPy asks for this before it is imported
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(library=library)],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.stdout == "the same\n", ended.stderr
