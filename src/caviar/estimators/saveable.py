"""Estimators that can be saved: their fit as plain values, and set again from them."""

from __future__ import annotations

import os
import re
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import sklearn.exceptions
from sklearn.utils.validation import check_is_fitted

from .._errors import ConvergenceWarning, ParameterError
from ..engine.ascent.status import Status
from ..fitting.loading import posterior_of_document
from ..posterior.documents.posteriors import document_of_posterior
from ..posterior.posterior import Posterior
from ..posterior.summary import Summary
from ..posterior.uncertainty.pending import ASKED
from ..storage import write_saved
from .arguments.checks import as_generator
from .arguments.fit_arguments import FitArguments
from .arguments.fitted import Fitted, keep

_OF_ATTRIBUTES = {
    "theta.mean": "means",
    "theta.precision": "precisions",
    "mean": "means",
    "precision": "precisions",
    "rate": "rates",
    "emission": "emission_probabilities",
    "mean_precision": "mean_precision_prior",
    "scale": "covariance_prior",
}
"""Variable of a stated model, or part of a joint factor -> what attributes of estimators call it."""

_PART = re.compile(r"\b\w+\.(?:mean|precision)\b")
"""Part of a joint factor, in a sentence."""

_ATTRIBUTE = re.compile(r"[a-z][a-z0-9_]*_")


class PlainForm(NamedTuple):
    """How an attribute becomes plain values, and these the attribute; the latter refuses values of no attribute.

    Attributes
    ----------
    of, back
        The functions. The second raises ValueError, LookupError or TypeError.
    """

    of: Callable[[Any], Any]
    back: Callable[[Any], Any]


_AS_IT_IS = PlainForm(lambda value: value, lambda value: value)


class UnsettledWarning(sklearn.exceptions.ConvergenceWarning, ConvergenceWarning):
    """A fit ended before it converged: scikit-learn's warning, and the library's own."""


class Saveable(FitArguments):
    """An estimator that can be saved and loaded by :func:`caviar.load`."""

    _kind_in_words: ClassVar[str]
    """Its name on pages."""
    _objective_in_words: ClassVar[str] = "ELBO"
    """The objective that its fit raises."""

    posterior_: ClassVar[Any] = Fitted()
    elbo_: ClassVar[Any] = Fitted()

    _plain_forms: ClassVar[Mapping[str, PlainForm]] = {}
    """Attribute of a fit -> how it is saved; all others are saved as they are."""

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit ended: one that was refused half-way leaves an estimator that is not fitted."""
        return hasattr(self, "posterior_")

    def _keep(self, posterior: Posterior) -> None:
        """Set the attributes of a fit."""
        keep(self, posterior_=posterior, elbo_=posterior.elbo)
        self.converged_, self.n_iter_ = posterior.converged, posterior.n_iter

    def _settle(self, posterior: Posterior, data: Mapping[str, Any], sample_weight: Any) -> None:
        """Compute linear response, or what is to second order, if it was asked for."""
        if self.uncertainty in ASKED:
            posterior._show(ASKED[self.uncertainty](data, sample_weight, self._place))

    def _explanation(self, posterior: Posterior) -> str:
        """Return why a fit ended where it did, in words."""
        return posterior.status.explanation

    def _tell_end(self, posterior: Posterior, stacklevel: int = 3) -> None:
        """Warn of a fit that ended before it converged."""
        if posterior.status in (Status.MAX_ITER, Status.INTERRUPTED) and self.max_iter:
            message = f"{type(self).__name__}: {self._explanation(posterior)}"
            warnings.warn(message, UnsettledWarning, stacklevel=stacklevel)

    def _generator_of(self, random_state: Any) -> np.random.Generator:
        """Return the generator of a seed, or the one that the fit left."""
        return self._generator if random_state is None else as_generator(random_state)

    @abstractmethod
    def _as_data(self, X: Any) -> dict[str, Any]:
        """Return rows, as the methods of the estimator take them, as its posterior takes them: by name."""

    def _parameter_as_plain(self, name: str, value: Any) -> Any:
        """Return an argument of the estimator as plain values."""
        return _kept(name, value)

    def _check_restored(self) -> None:
        """Refuse attributes of a file that do not belong together.

        Raises
        ------
        ValueError, LookupError, TypeError, AttributeError
            If they do not.
        """

    def _shown_name(self, stated: str) -> str:
        """Return what users call a variable of the stated model, or a part of one: as the attribute that has it."""
        return _OF_ATTRIBUTES.get(stated, stated)

    def _in_shown_names(self, sentence: str) -> str:
        """Return a sentence about the stated model with what users call its variables."""
        found = _PART.sub(lambda part: self._shown_name(part[0]), sentence)
        for name in self.posterior_:
            whole = self._shown_whole(name)
            if whole != name:
                found = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w|\.\w)", lambda _, own=whole: own, found)
        return found

    def _shown_whole(self, stated: str) -> str:
        """Return what a sentence calls a joint factor as a whole, of which attributes have the parts."""
        return "the components" if stated == "theta" else stated

    def _stated_name(self, shown: str) -> str:
        """Return the variable of the stated model that users call so; the name itself if there is none."""
        parts = (name + part for name in self.posterior_ for part in ("", ".mean", ".precision"))
        return next((own for own in parts if self._shown_name(own) == shown), shown)

    def summary(self, *, level: float = 0.95, max_rows: int | None = 10) -> Summary:
        """Return a table of the learned parameters: mean, standard deviation and central interval of each entry.

        Parameters have the names of the attributes: ``means`` for what :attr:`means_` has, for example. Plots take
        these names too; ``posterior_`` and ArviZ have those of the stated model.

        Parameters
        ----------
        level
            Probability of the intervals, between 0 and 1.
        max_rows
            Largest number of rows for each variable; None shows all.

        Returns
        -------
        Summary
            Prints as a table, also in a notebook; ``to_frame()`` makes a DataFrame.
        """
        check_is_fitted(self)
        found = self.posterior_.summary(level=level, max_rows=max_rows)
        value: float = getattr(self, "elbo_", self.posterior_.elbo)
        status = f"{self.posterior_.status.value} (iterations: {self.posterior_.n_iter})"
        title = f"{self._kind_in_words}: {self._objective_in_words} {value:.6f} nats, {status}"
        rows = tuple(replace(row, variable=self._shown_name(row.variable)) for row in found.rows)
        left_out = {self._shown_name(name): count for name, count in found.left_out.items()}
        remark = self._in_shown_names(found.remark)
        return replace(found, title=title, rows=rows, left_out=left_out, remark=remark)

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's page on the arguments, and below it what was learnt."""
        return super()._repr_html_inner() + self._learnt_as_html()

    def _repr_mimebundle_(self, **arguments: Any) -> dict[str, Any]:
        """Return the same for notebooks that ask for several formats."""
        bundle = super()._repr_mimebundle_(**arguments)
        if "text/html" in bundle:
            bundle["text/html"] += self._learnt_as_html()
        return bundle

    def _learnt_as_html(self) -> str:
        return self.summary()._repr_html_() if hasattr(self, "posterior_") else ""

    def save(self, path: str | os.PathLike[str], *, about: Mapping[str, Any] | None = None) -> None:
        """Save the fitted estimator to a file that :func:`caviar.load` reads.

        The file contains arrays and JSON but no code, so loading a file from an unknown source is safe. If saving
        fails, no partial file is left.

        Parameters
        ----------
        path
            Path of the file, by convention ending in ``.caviar``. An existing file is replaced.
        about
            Further information to save, as texts, numbers, lists and dictionaries: the source of the data, for example.
            A loaded estimator has it as ``about_``.

        Raises
        ------
        DataError
            If the file cannot be written.
        ParameterError
            If an argument of the estimator is of a type that cannot be saved.

        Notes
        -----
        A ``random_state`` that is not a whole number, a ``verbose`` that is a function, and the ``executor`` are not
        saved.
        """
        check_is_fitted(self)
        if not type(self).__module__.startswith("caviar."):
            raise ParameterError(
                f"{type(self).__name__} is not a class of caviar, so caviar.load cannot find it; pickle it"
            )
        write_saved(path, type(self).__name__, self._document(about))

    def _document(self, about: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the fitted estimator as plain values."""
        attributes = {
            name: self._plain_forms.get(name, _AS_IT_IS).of(value)
            for name, value in vars(self).items()
            if _ATTRIBUTE.fullmatch(name) and name not in {"posterior_", "about_"}
        }
        state = self._generator.bit_generator.state
        return {
            "parameters": {
                name: self._parameter_as_plain(name, value)
                for name, value in self.get_params(deep=False).items()
            },
            "attributes": attributes,
            "posterior": document_of_posterior(self.posterior_),
            "generator": state if state["bit_generator"] == "PCG64" else None,
            "about": dict(getattr(self, "about_", {}) if about is None else about),
        }

    def _restore(self, document: Mapping[str, Any]) -> None:
        """Set what was fitted.

        Raises
        ------
        ValueError, LookupError, TypeError, AttributeError
            If the values are not those of an estimator of this class.
        """
        for name, value in document["attributes"].items():
            if not _ATTRIBUTE.fullmatch(name):
                raise ValueError(f"an attribute {name!r:.40}")
            if isinstance(value, np.ndarray) and value.dtype == np.bool_:
                raise TypeError(f"the attribute {name!r:.40} holds no numbers")
            own = self._plain_forms.get(name, _AS_IT_IS).back(value)
            if isinstance(getattr(type(self), name, None), Fitted):
                keep(self, **{name: own})
            else:
                setattr(self, name, own)
        self._keep(posterior_of_document(document["posterior"]))
        self._check_restored()
        self._generator: np.random.Generator = np.random.default_rng()
        if document["generator"] is not None:
            self._generator.bit_generator.state = document["generator"]
        if document["about"]:
            self.about_ = dict(document["about"])


def _kept(name: str, value: Any) -> Any:
    """Return what is saved of an argument."""
    if name == "random_state" and isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None
    if name == "executor":
        # of this machine, and none that a file from elsewhere may choose
        return None
    return False if name == "verbose" and callable(value) else value
