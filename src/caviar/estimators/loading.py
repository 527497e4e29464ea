"""Loading what was saved."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._errors import DataError
from .._typing import AnyArray
from ..fitting.loading import model_of_document, posterior_of_document
from ..posterior.posterior import Posterior
from ..storage import read, unpack, upgraded
from .bayesian_gaussian_mixture import BayesianGaussianMixture
from .gaussian_mixture import GaussianMixture
from .hidden_markov_model import HiddenMarkovModel
from .known_variance_mixture import KnownVarianceMixture
from .latent_dirichlet_allocation import LatentDirichletAllocation
from .mixed_mixture import MixedMixture
from .mixed_models.mixed_model import MixedModel
from .saveable import Saveable

_CLASSES: dict[str, type[Saveable]] = {
    kind.__name__: kind
    for kind in (
        BayesianGaussianMixture,
        GaussianMixture,
        HiddenMarkovModel,
        KnownVarianceMixture,
        LatentDirichletAllocation,
        MixedMixture,
        MixedModel,
    )
}
"""All that a file can name; a name that is not here is refused."""

_MISFITS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError)
"""Errors from putting together values that do not belong together; a LinAlgError is a ValueError."""


def load(path: str | os.PathLike[str]) -> Any:
    """Return the estimator, posterior or model that was saved to a file; its results are the same to the last bit.

    The file contains arrays and JSON but no code, so loading a file from an unknown source is safe.

    Parameters
    ----------
    path
        Path of a file written by ``estimator.save``, ``posterior.save`` or ``model.save``.

    Raises
    ------
    DataError
        If the file does not exist, is damaged or of another kind, or was written by a later version of the library.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, caviar as cv
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "galaxies.caviar"
    >>> X = cv.datasets.load_galaxies().values
    >>> mixture = cv.BayesianGaussianMixture(3, random_state=0).fit(X)
    >>> mixture.save(path)
    >>> np.array_equal(cv.load(path).score_samples(X), mixture.score_samples(X))
    True
    """
    header, arrays = read(path)
    try:
        # made-up parameters may overflow before they are refused
        with np.errstate(all="ignore"):
            _check_kind(header["class"])
            document = unpack(header, _Handed(arrays))
            found = _loaded(upgraded(document, document["format_version"]))
            posterior = getattr(found, "posterior_", found)
            if isinstance(posterior, Posterior):
                posterior.saved_by = str(header.get("caviar_version"))[:40]
            return found
    except _MISFITS as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise DataError(f"{path} is damaged, or not made by caviar: {what:.500}") from error


def _check_kind(kind: Any) -> None:
    if kind not in ("Model", "Posterior", *_CLASSES):
        raise ValueError(
            f"it contains a {kind!r:.60}, and this version reads Model, Posterior, {', '.join(_CLASSES)}"
        )


class _Handed(dict[str, AnyArray]):
    """Arrays of a file, each given out once: a file cannot ask for more memory than it contains."""

    def __getitem__(self, name: str) -> AnyArray:
        return self.pop(name)


def _loaded(document: Mapping[str, Any]) -> Any:
    kind = document["class"]
    if kind == "Posterior":
        return posterior_of_document(document["posterior"])
    if kind == "Model":
        return model_of_document(document["model"])
    return _estimator_of(document)


def _estimator_of(document: Mapping[str, Any]) -> Saveable:
    estimator = _CLASSES[document["class"]]()
    # a file from elsewhere does not say what to connect to
    estimator.set_params(**{**document["parameters"], "executor": None})
    estimator._restore(document)
    return estimator
