"""Components can be told apart in grey and with each kind of colour blindness.

The simulations are those for complete dichromacy (severity 1.0) of G. M. Machado, M. M. Oliveira and
L. A. F. Fernandes, "A physiologically-based model for simulation of color vision deficiency", IEEE Transactions on
Visualization and Computer Graphics 15 (2009), 1291-1298, for linear RGB.
"""

import numpy as np
import pytest

from caviar.plot.parts.colours import blend, colours_of, hatch_of, line_of, marker_of

VISION = {
    "normal": np.eye(3),
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(srgb):
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def lab(srgb, vision="normal"):
    """Return CIELAB under D65 of colours as they are seen, shape (n, 3)."""
    seen = np.clip(linear(np.asarray(srgb)) @ np.transpose(VISION[vision]), 0, 1)
    xyz = seen @ XYZ.T / XYZ.sum(axis=1)
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


def test_the_conversion_gives_the_values_of_the_literature():
    # sRGB red, as tabulated by B. Lindbloom, and white
    np.testing.assert_allclose(lab([[1.0, 0, 0], [1, 1, 1]]), [[53.24, 80.09, 67.20], [100, 0, 0]], atol=0.05)


def test_each_colour_differs_from_the_next_in_lightness():
    lightness = lab(colours_of(9))[:, 0]
    assert np.abs(np.diff(lightness)).min() > 15


def test_no_two_colours_have_one_grey():
    assert np.diff(np.sort(lab(colours_of(8))[:, 0])).min() > 5


@pytest.mark.parametrize("vision", VISION)
def test_all_colours_differ_with_every_kind_of_vision(vision):
    seen = lab(colours_of(8), vision)
    distances = np.linalg.norm(seen[:, None] - seen[None], axis=-1)[np.triu_indices(8, 1)]
    assert distances.min() > 22  # a difference of about 2 can be noticed, one of 10 at a glance


def test_the_palette_of_okabe_and_ito_would_not_do_in_grey():
    """Its green and pink have nearly one lightness: the reason for another palette, and that the test can fail."""
    green, pink = np.array([[0, 158, 115], [204, 121, 167]]) / 255
    assert abs(np.diff(lab([green, pink])[:, 0])[0]) < 5


def test_colour_and_marker_together_name_64_components():
    for mark in (marker_of, hatch_of, line_of):
        assert len({(tuple(colours_of(k + 1)[k]), str(mark(k))) for k in range(64)}) == 64
        assert len({str(mark(k)) for k in range(8)}) == 8


def test_the_style_sheet_has_the_same_colours():
    from matplotlib import rc_context, rcParams
    from matplotlib.colors import to_rgb

    from caviar.plot.parts.axes import STYLE

    with rc_context(fname=STYLE):
        cycle = rcParams["axes.prop_cycle"].by_key()["color"]
    np.testing.assert_allclose([to_rgb(colour) for colour in cycle], colours_of(8), atol=1e-9)


def test_certain_rows_have_the_colour_itself_and_uncertain_ones_lie_between():
    palette = colours_of(3)
    np.testing.assert_allclose(blend(np.eye(3), palette), palette, atol=1e-12)
    half = blend(np.array([[0.5, 0.5, 0.0]]), palette)[0]
    assert np.all(half >= palette[:2].min(axis=0) - 1e-12)
    assert np.all(half <= palette[:2].max(axis=0) + 1e-12)
