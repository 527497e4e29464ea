"""What a page of a posterior is about: the posterior, data, and what the estimator around it knows, if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...._errors import DataError, ParameterError
from ....language import Data, MarkovChain
from ....posterior.posterior import Posterior
from ...tables import column_names
from ..seen import Seen, seen_of

__all__ = ["Subject", "hidden_names", "subject_of"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A posterior, and what is known of where it comes from.

    Attributes
    ----------
    posterior
        Of the fit.
    data
        Name of each array -> its values, as the posterior takes them; None for none.
    kind
        What it is called.
    about
        What was kept with a fit: source, command, versions, ...
    estimator
        The estimator around it; None for a stated model.
    words
        The vocabulary, where documents were fitted to.
    seen
        What the fit has seen of the data; None without data.
    """

    posterior: Posterior
    data: Mapping[str, Any] | None
    kind: str
    about: Mapping[str, Any]
    estimator: Any = None
    words: tuple[str, ...] = ()
    seen: Seen | None = None

    @property
    def hidden(self) -> list[str]:
        """Names of the hidden variables of the rows, without those that only serve to state another, as its link."""
        return hidden_names(self.posterior)


def subject_of(fitted: Any, data: Any) -> Subject:
    """Return what a page is about.

    Parameters
    ----------
    fitted
        A posterior, or a fitted LatentDirichletAllocation.
    data
        A mapping for a posterior; counts, documents x words, for topics; None for none.

    Raises
    ------
    DataError, ParameterError
        If the data are none of the model.
    """
    if isinstance(fitted, Posterior):
        _check_data(fitted, data)
        seen = None if data is None else seen_of(fitted, data)
        return Subject(fitted, data, _kind(fitted), (fitted.data_summary or {}).get("about", {}), seen=seen)
    counts = None if data is None else {"word": fitted._validated(data, reset=False)}
    about = dict(getattr(fitted, "about_", {}))
    kind = "Topics by latent Dirichlet allocation"
    seen = None if counts is None else seen_of(fitted.posterior_, counts)
    return Subject(fitted.posterior_, counts, kind, about, fitted, column_names(fitted), seen)


def hidden_names(posterior: Posterior) -> list[str]:
    """Return the names of the hidden variables of the rows, without those that only serve to state another."""
    variables = posterior.model.variables
    return sorted(name for name in posterior._local if variables[name].stated_with is variables[name])


def _check_data(posterior: Posterior, data: Any) -> None:
    if data is not None and not isinstance(data, Mapping):
        raise ParameterError(
            f"data of a posterior are a mapping from the names of arrays to their values, as for fit; got "
            f"{type(data).__name__}"
        )
    for leaf in posterior.model.leaves:
        if data is not None and leaf.name not in data:
            raise DataError(
                f"the data lack '{leaf.name}', which the model observes: the report compares with it"
            )


def _kind(posterior: Posterior) -> str:
    """Return what a stated model is called: by what stands out in it."""
    model = posterior.model
    leaves = " and ".join(leaf.name for leaf in model.leaves)
    hidden = [model.variables[name] for name in hidden_names(posterior)]
    if any(isinstance(variable, MarkovChain) for variable in hidden):
        return f"Model of {leaves} with hidden states along time"
    if any(type(variable).__name__ == "Categorical" for variable in hidden):
        return f"Mixture model of {leaves}"
    if hidden:
        return f"Model of {leaves} with hidden variables"
    known = [node.name for node in model.nodes if isinstance(node, Data)]
    return f"Regression of {leaves} on {' and '.join(known)}" if known else f"Model of {leaves}"
