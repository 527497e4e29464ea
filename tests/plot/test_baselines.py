"""Pictures look as they did when somebody looked at them; tests/plot/gallery.py draws the baselines anew."""

import shutil

import numpy as np
import pytest
from matplotlib.testing.compare import compare_images

from plot.gallery import BASELINES, GALLERY, write

TOLERANCE = 4.0
"""Root mean square difference of pixels, of 255: more than versions of Matplotlib differ in the smoothing of edges."""


def difference(drawn, name, folder):
    """Return what Matplotlib says of a picture and a baseline; None if they agree."""
    expected = folder / f"expected_{name}.png"
    shutil.copy(BASELINES / f"{name}.png", expected)
    return compare_images(str(expected), str(drawn), tol=TOLERANCE)


@pytest.mark.thinned(28)
@pytest.mark.parametrize("name", GALLERY)
def test_a_picture_is_that_of_its_baseline(name, tmp_path):
    write(name, tmp_path / "drawn.png")
    assert difference(tmp_path / "drawn.png", name, tmp_path) is None


def test_another_picture_is_told_from_the_baseline(tmp_path, monkeypatch):
    """The comparison can fail: other colours, or other hatches, are noticed."""
    monkeypatch.setattr("caviar.plot.parts.colours.colours_of", lambda n: np.full((n, 3), 0.9))
    write("weights", tmp_path / "drawn.png")
    assert difference(tmp_path / "drawn.png", "weights", tmp_path) is not None


def test_baselines_are_small_and_all_used():
    files = sorted(BASELINES.glob("*.png"))
    assert [path.stem for path in files] == sorted(GALLERY)
    assert all(path.stat().st_size < 25_000 for path in files)
