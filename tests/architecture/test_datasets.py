"""The data sets that caviar ships are those of the literature, and travel with the package."""

import numpy as np
import pytest

from caviar.datasets import load_faithful, load_galaxies, load_motion_capture, load_penguins


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


def test_penguins_are_the_published_table():
    penguins = load_penguins()
    assert penguins.values.shape == (344, 8)
    # summary(penguins) in R's palmerpenguins
    for name, counts in {"species": [152, 68, 124], "island": [168, 124, 52], "sex": [165, 168]}.items():
        codes = penguins.column(name)
        assert np.bincount(codes[~np.isnan(codes)].astype(int)).tolist() == counts
    means = [np.nanmean(penguins.column(name)) for name in penguins.columns[2:6]]
    np.testing.assert_allclose(means, [43.92, 17.15, 200.9, 4202], rtol=2e-4)
    assert np.isnan(penguins.values).sum(axis=0).tolist() == [0, 0, 2, 2, 2, 2, 11, 0]


def test_motion_capture_has_six_recordings_of_twelve_activities():
    capture = load_motion_capture()
    assert capture.values.shape == (2058, 14)
    assert np.bincount(capture.column("sequence").astype(int)).tolist() == [0, 382, 205, 251, 446, 387, 387]
    assert np.all(np.diff(capture.column("sequence")) >= 0)
    assert len(capture.categories["activity"]) == len(np.unique(capture.column("activity"))) == 12
    np.testing.assert_allclose(capture.values[0, 2:5], [-0.7, -3.0, 0.1])


def test_columns_are_found_by_name():
    faithful = load_faithful()
    np.testing.assert_array_equal(faithful.column("waiting"), faithful.values[:, 1])
    with pytest.raises(KeyError, match="'eruptions', 'waiting'"):
        faithful.column("Waiting")


def test_every_load_gives_a_fresh_array():
    first = load_faithful()
    first.values[:] = 0
    assert load_faithful().values.min() > 0


@pytest.mark.parametrize("name", ["faithful.csv", "galaxies.csv", "penguins.csv", "motion_capture.csv.gz"])
def test_the_tables_lie_in_the_package(name):
    from importlib.resources import files

    assert (files("caviar.datasets") / name).is_file()


def test_a_table_becomes_a_frame_with_words():
    penguins = load_penguins()
    frame = penguins.to_frame()
    assert list(frame.columns) == list(penguins.columns)
    assert frame["species"].value_counts().to_dict() == {"Adelie": 152, "Gentoo": 124, "Chinstrap": 68}
    assert frame["sex"].isna().sum() == np.isnan(penguins.column("sex")).sum()
    np.testing.assert_array_equal(frame["body_mass_g"], penguins.column("body_mass_g"))
