"""Mixtures of every kind and structure, for the laws that all of them obey."""

import numpy as np

import caviar as cv

WEIGHTS = [0.25, 0.75]
PLANE = [[-1.0, 2.0], [1.5, 0.5]]
PLANE_MATRICES = np.array([[[1.0, 0.6], [0.6, 2.0]], [[0.5, -0.3], [-0.3, 0.7]]])
SPACE = [[-1.0, 2.0, 0.0], [1.5, 0.5, 3.0]]
ROOTS = np.array(
    [
        [[1.0, 0.0, 0.0], [0.6, 1.2, 0.0], [-0.4, 0.3, 0.8]],
        [[0.7, 0.0, 0.0], [-0.5, 0.6, 0.0], [0.2, 0.4, 1.5]],
    ]
)
SPACE_MATRICES = ROOTS @ ROOTS.swapaxes(1, 2)


def mixtures(locations, matrices, df):
    """Return a mixture of every kind and structure with these locations."""
    diagonals = np.diagonal(matrices, axis1=1, axis2=2)
    shapes = {
        "full": matrices,
        "tied": matrices[:1],
        "diagonal": diagonals,
        "tied diagonal": diagonals[:1],
        "spherical": diagonals[:, 0],
        "tied spherical": diagonals[:1, 0],
    }
    every = {
        f"normal, {s}": cv.NormalMixture.from_covariances(WEIGHTS, locations, shape)
        for s, shape in shapes.items()
    }
    for s, shape in shapes.items():
        every[f"student, {s}"] = cv.StudentMixture.from_shapes(WEIGHTS, locations, shape, df)
    columns = np.array(df)[:, None] + np.arange(len(locations[0]))
    every["product"] = cv.ProductStudentMixture.from_scales(WEIGHTS, locations, np.sqrt(diagonals), columns)
    return every


LINE = mixtures([[-1.0], [3.0]], np.array([[[0.5]], [[2.0]]]), [1.5, 6.0])
TWO_COLUMNS = mixtures(PLANE, PLANE_MATRICES, [2.5, 7.0])
THREE_COLUMNS = mixtures(SPACE, SPACE_MATRICES, [3.5, 9.0])


def stretched(reach, step):
    """Return points sinh(t) and weights cosh(t) dt: on them the trapezoidal rule is exact, for heavy tails too."""
    t = np.arange(-reach, reach + step, step)
    return np.sinh(t), np.cosh(t) * step
