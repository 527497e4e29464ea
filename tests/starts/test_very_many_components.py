"""An ordinary mixture with very many components begins at its first clusters: a race would cost more than the fit."""

import numpy as np
import pytest

import caviar as cv
from caviar.engine.starts import from_data


class Raced(Exception):
    """What a race of starts raises here."""


def refused(*arguments, **keywords):
    raise Raced


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("n_components", "is_raced"), [(3, True), (900, False)])
@pytest.mark.filterwarnings("ignore::caviar.CaviarWarning")
def test_only_few_components_race(n_components, is_raced, monkeypatch):
    rng = np.random.default_rng(0)
    # broad clusters, so that the first guess is not clear by itself
    X = rng.normal(size=(10_500, 8)) + 0.5 * rng.integers(0, 2, (10_500, 1))
    monkeypatch.setattr(from_data, "best_of", refused)
    model = cv.models.normal_wishart_mixture(8, n_components)
    if is_raced:
        with pytest.raises(Raced):
            model.fit({"x": X}, seed=0, max_iter=0)
    else:
        fit = model.fit({"x": X}, seed=0, max_iter=0, uncertainty="mean_field")
        assert np.isfinite(fit.elbo)
        # its clusters tell the components apart
        assert np.ptp(fit["theta"].mean[:, 0]) > 1
