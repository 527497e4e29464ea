"""The data sets that caviar ships are those of the literature, and travel with the package."""

import numpy as np
import pytest

from caviar.datasets import load_faithful, load_galaxies


def test_old_faithful_is_the_published_table():
    faithful = load_faithful()
    assert faithful.columns == ("eruptions", "waiting")
    assert faithful.values.shape == (272, 2)
    assert faithful.values.dtype == np.float64
    # summary(faithful) in R: means 3.488 and 70.90, medians 4 and 76, extremes 1.6, 5.1 and 43, 96
    np.testing.assert_allclose(faithful.values.mean(axis=0), [3.488, 70.90], rtol=1e-4)
    np.testing.assert_array_equal(np.median(faithful.values, axis=0), [4, 76])
    np.testing.assert_array_equal(faithful.values.min(axis=0), [1.6, 43])
    np.testing.assert_array_equal(faithful.values.max(axis=0), [5.1, 96])


def test_galaxies_are_the_published_velocities():
    velocity = load_galaxies().column("velocity")
    assert velocity.shape == (82,)
    # summary(galaxies) in R's MASS: mean 20828 km/s, median 20834, extremes 9172 and 34279
    np.testing.assert_allclose(velocity.mean(), 20.828, rtol=1e-4)
    np.testing.assert_allclose(np.median(velocity), 20.8335, rtol=1e-4)
    assert (velocity[0], velocity[-1]) == (9.172, 34.279)
    assert np.all(np.diff(velocity) >= 0)


def test_columns_are_found_by_name():
    faithful = load_faithful()
    np.testing.assert_array_equal(faithful.column("waiting"), faithful.values[:, 1])
    with pytest.raises(KeyError, match="'eruptions', 'waiting'"):
        faithful.column("Waiting")


def test_every_load_gives_a_fresh_array():
    first = load_faithful()
    first.values[:] = 0
    assert load_faithful().values.min() > 0


@pytest.mark.parametrize("name", ["faithful.csv", "galaxies.csv"])
def test_the_tables_lie_in_the_package(name):
    from importlib.resources import files

    assert (files("caviar.datasets") / name).is_file()
