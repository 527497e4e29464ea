"""Pictures go where they are asked to go, and leave the rest of Matplotlib as it was."""

import subprocess
import sys

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import caviar as cv
from plot.gallery import GALLERY


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", GALLERY)
def test_given_axes_are_drawn_into_and_given_back(name):
    picture = GALLERY[name]
    own = picture.draw()
    figure = Figure()
    given = figure.subplots(*picture.grid)
    argument = "ax" if picture.grid == (1, 1) and not picture.is_array else "axes"
    before = len(plt.get_fignums())
    drawn = picture.draw(**{argument: given})
    assert len(plt.get_fignums()) == before
    if argument == "ax":
        assert drawn is given
        assert (drawn.get_xlabel(), drawn.get_ylabel()) == (own.get_xlabel(), own.get_ylabel())
    else:
        assert {id(ax) for ax in drawn.ravel()} <= {id(ax) for ax in figure.axes}
        assert len(drawn.ravel()) == len(own.ravel())


@pytest.mark.thinned(12)
@pytest.mark.parametrize("name", GALLERY)
def test_settings_are_left_as_they_were(name):
    before = dict(mpl.rcParams)
    GALLERY[name].draw()
    assert dict(mpl.rcParams) == before


@pytest.mark.thinned(32)
@pytest.mark.parametrize("name", GALLERY)
def test_every_label_lies_inside_the_picture_and_axes_are_labelled(name):
    drawn = GALLERY[name].draw()
    axes = [ax for ax in (drawn.ravel() if hasattr(drawn, "ravel") else [drawn]) if ax.get_visible()]
    figure = axes[0].figure
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    for ax in figure.axes:
        if ax.get_visible():
            box = ax.get_tightbbox()
            assert box.x0 >= -1
            assert box.y0 >= -1
            assert box.x1 <= width + 1
            assert box.y1 <= height + 1
    assert any(ax.get_xlabel() for ax in axes)
    assert figure.get_suptitle() or any(ax.get_title() for ax in axes)


def test_wrong_axes_are_refused():
    _, given = plt.subplots(1, 3)
    with pytest.raises(cv.ParameterError, match=r"ax= must be one Matplotlib Axes.*ndarray"):
        GALLERY["weights"].draw(ax=given)
    with pytest.raises(cv.ParameterError, match=r"takes 4 Matplotlib Axes here.*subplots\(2, 2\).*got 3"):
        GALLERY["pairs"].draw(axes=given)
    with pytest.raises(cv.ParameterError, match="NoneType"):
        GALLERY["pairs"].draw(axes=[None] * 4)


@pytest.mark.slow
def test_matplotlib_is_loaded_when_a_picture_is_asked_for():
    program = (
        "import sys, caviar; caviar.plot; print('matplotlib' in sys.modules); caviar.plot.weights; "
        "print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


def test_without_matplotlib_the_error_says_what_to_install():
    program = (
        "import sys, caviar; sys.modules['matplotlib'] = None\n"
        "try:\n    caviar.plot.pairs\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 'python -m pip install "matplotlib>=3.9"' in done.stdout


def test_other_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="piechart"):
        _ = cv.plot.piechart
    assert set(cv.plot.__all__) <= set(dir(cv.plot))
