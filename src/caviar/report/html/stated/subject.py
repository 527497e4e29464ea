"""The subject of a page on a posterior: the posterior of a model or an estimator, and data.

Profiles of the clusters of a mixed table: typical values of each in every column.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ...._errors import DataError, ParameterError
from ....estimators.mixed_models.columns import Rows as Table
from ....estimators.mixed_models.design import NEW
from ....estimators.mixtures.components import column_names, told_by
from ....language import Categorical, Data, MarkovChain
from ....posterior.figures import Figures
from ....posterior.posterior import Posterior
from ...tables import component_table
from ..checks.section import Checks
from ..naming import in_words
from ..numbers import number, percent
from ..section import Section
from ..shared import Progress, Quality, Reproduce, Trust
from ..subject import Subject
from .columns import columns_of, columns_of_formula
from .effects import Effects
from .figures import figures_of
from .findings import findings_of
from .pictures import Pictures
from .rows import Rows, rows_of
from .statement import Statement
from .variables import Variables

_USED = 0.005
"""Weight from which on a cluster has a profile."""
_MOST_CLUSTERS, _MOST_COLUMNS, _MOST_VALUES = 12, 40, 3


class Profiles(Section):
    """A table with a row for each column of the data and a column for each cluster."""

    name, link, template = "profiles", "Clusters", "profiles.html"

    def gather(self, subject: Any) -> dict[str, Any]:
        estimator = subject.estimator
        found = sorted(component_table(estimator), key=lambda own: -own.weight.value)
        found = [own for own in found if own.weight.value >= _USED]
        shown, names = found[:_MOST_CLUSTERS], estimator._columns.names
        lines = [
            {
                "name": name,
                "kind": kind,
                "cells": [_cell(own, place) for own in shown],
                "apart": told_by(shown, place),
            }
            for place, (name, kind) in enumerate(zip(names, estimator.kinds_, strict=True))
        ]
        order = sorted(range(len(lines)), key=lambda place: -lines[place]["apart"])
        kept = sorted(order[:_MOST_COLUMNS])
        return {
            "profiles": {
                "clusters": [{"k": own.label, "weight": own.weight.value} for own in shown],
                "left_out": len(found) - len(shown),
                "lines": [lines[place] for place in kept],
                "of": len(lines),
                "telling": [lines[place]["name"] for place in order[:3] if lines[place]["apart"] > 0],
            }
        }


def _cell(component: Any, place: int) -> dict[str, Any]:
    """Return what a cluster has in a column: mean and spread of the rows, or the most probable values."""
    shares = component.probabilities[place]
    if shares is not None:
        best = sorted(shares.items(), key=lambda pair: -pair[1].value)[:_MOST_VALUES]
        text = [f"{value} {percent(share.value)}" for value, share in best]
        return {"first": text[0], "rest": text[1:], "key": best[0][1].value}
    mean = component.mean[place]
    rest = [f"sd {number(component.standard_deviation[place], 3)}"]
    width = None if mean.low is None else mean.high - mean.low
    if width is not None:
        rest.append(f"mean in {number(mean.low, beside=width)} to {number(mean.high, beside=width)}")
    return {"first": number(mean.value, beside=width), "rest": rest, "key": mean.value}


ABOUT_THE_MODEL = (Pictures(), Variables(), Statement(), Quality(), Progress(), Reproduce())
"""The sections that follow those about the result, where the result is known by name: states, effects, clusters."""


class StatedSubject(Subject):
    """A posterior and its origin: data and arguments.

    Parameters
    ----------
    fitted
        A posterior, or a fitted estimator around one: HiddenMarkovModel, LatentDirichletAllocation, MixedMixture.
    data
        A mapping for a posterior; what the methods of an estimator take; None for none.
    source
        What the data are called.

    Attributes
    ----------
    data
        Name of each array -> its values, as the posterior takes them; None for none.
    estimator
        The estimator around the posterior; None for a stated model.
    vocabulary
        The words of documents, where the model is one of topics.

    Raises
    ------
    DataError, ParameterError
        If the data are not data of the model.
    """

    estimator: Any

    sections = (
        Trust(),
        Statement(),
        Pictures(),
        Variables(),
        Checks(),
        Rows(),
        Quality(),
        Progress(),
        Reproduce(),
    )

    def __init__(self, fitted: Any, data: Any, source: str | None) -> None:
        self.source, self.vocabulary = source, ()
        if isinstance(fitted, Posterior):
            data = None if data is None else fitted._evaluator.named(data).values
            _check_data(fitted, data)
            self.estimator, self.posterior, self.data = None, fitted, data
            self.about = (fitted.data_summary or {}).get("about", {})
            return
        self.estimator, self.posterior = fitted, fitted.posterior_
        self.about = dict(getattr(fitted, "about_", {}))
        if hasattr(fitted, "components_"):
            self.vocabulary = column_names(fitted)
        self.data = None if data is None else self.posterior._evaluator.named(fitted._as_data(data)).values

    @property
    def _topics(self) -> list[int]:
        """Numbers of the topics that have words."""
        return self.estimator.topics_in_use_

    @cached_property
    def hidden(self) -> list[str]:
        """Names of the hidden variables of the rows, without those that only serve to state another, as its link."""
        variables = self.posterior.model.variables
        return sorted(
            name for name in self.posterior._local if variables[name].stated_with is variables[name]
        )

    @cached_property
    def figures(self) -> list[Figures]:
        """Mean, spread and interval of every entry of every global variable, without topics that have no words."""
        found = figures_of(self)
        if not self.vocabulary:
            return found
        used = self._topics
        return [own.along_first(used) if own.name == "topics" else own for own in found]

    @property
    def drawn(self) -> list[Figures]:
        """The figures that are drawn: of the weights of topics those of topics with words."""
        if not self.vocabulary:
            return self.figures
        used = self._topics
        return [own.along_first(used) if own.name == "weights" else own for own in self.figures]

    @cached_property
    def rows(self) -> dict[str, Any] | None:
        """The data under the posterior."""
        return rows_of(self)

    @property
    def group_sizes(self) -> dict[str, int]:
        """Plate -> how many of its repetitions the data have, where it has a place for new ones too."""
        return {}

    @property
    def words_of_labels(self) -> dict[str, str]:
        """What hidden labels of an estimator, whose names the user has not chosen, are called."""
        return {} if self.estimator is None else {"z": "cluster", "s": "state"}

    def findings(self) -> list[dict[str, str]]:
        return findings_of(self, self.fit, self.rows)

    def quality(self) -> list[dict[str, Any]]:
        return columns_of(self)

    def own_facts(self) -> dict[str, Any]:
        point = self.posterior._evaluator.point
        # a log joint density rather than a bound, where every global is a point mass
        is_point = len(self.posterior) > 0 and set(self.posterior) == set(point)
        return {
            "kind": self._kind() if self.estimator is None else self.estimator._kind_in_words,
            "objective": "objective" if is_point else "ELBO",
            "interval_remark": self.interval_remark,
            "rows": (self.posterior.data_summary or {}).get("rows"),
            "call": self._call(),
            "remarks": self._remarks(),
        }

    def _kind(self) -> str:
        """Return what a stated model is called, by its main part."""
        model = self.posterior.model
        leaves = " and ".join(leaf.name for leaf in model.leaves)
        hidden = [model.variables[name] for name in self.hidden]
        if any(isinstance(variable, MarkovChain) for variable in hidden):
            return f"Model of {leaves} with hidden states along time"
        if any(isinstance(variable, Categorical) for variable in hidden):
            return f"Mixture model of {leaves}"
        if hidden:
            return f"Model of {leaves} with hidden variables"
        known = [node.name for node in model.nodes if isinstance(node, Data)]
        return f"Regression of {leaves} on {' and '.join(known)}" if known else f"Model of {leaves}"

    def words(self) -> dict[str, str]:
        posterior, words, labels = self.posterior, {}, self.words_of_labels
        for name in posterior.elbo_terms:
            shown = self.shown_factors[name]
            if name in posterior:
                moved = "has moved from its" if shown == self.shown_name(name) else "have moved from their"
                words[name] = f"how far {shown} {moved} prior"
            elif all(own in posterior for own in name.split(", ")):
                words[name] = f"how far {shown}, which share a factor, have moved from their priors"
            elif name in posterior._local and name not in self.hidden:
                owner = posterior.model.variables[name].stated_with.name
                words[name] = f"what the bound on the link of {owner} costs"
            elif name in labels:
                words[name] = f"what finding the {labels[name]} of each row costs"
            elif name in posterior._local:
                words[name] = f"what finding {name} for each row costs"
            else:
                words[name] = f"how well {name} is explained, given the rest"
        return words

    def heading(self) -> list[tuple[str, str]]:
        posterior, plate = self.posterior, self.posterior.data_plate
        rows = "Documents" if self.vocabulary else "Rows" if plate is None else f"Rows ({plate.name})"
        facts = [(rows, self.n_rows)]
        if self.vocabulary:
            n_topics, n_words = posterior["topics"].mean.shape
            used = len(self._topics)
            topics = f"{used:,}" if used == n_topics else f"{used:,}, found; at most {n_topics:,}"
            facts += [("Topics", topics), ("Words in the vocabulary", f"{n_words:,}")]
            bound = getattr(self.estimator, "bound_", None)
            facts += [] if bound is None else [("Perplexity bound", number(float(bound), 5))]
        else:
            facts += [("Observed", ", ".join(leaf.name for leaf in posterior.model.leaves))]
            variables = posterior.model.variables
            learnt = [in_words(variables[name], self.shown_name) for name in posterior.stated_names]
            facts += [("Learnt", ", ".join(learnt) or "nothing")]
            facts += [("Hidden, for each row", ", ".join(self.hidden))] if self.hidden else []
        return [*self.origin, *facts]

    def _call(self) -> str:
        """Return what fits the same model again."""
        if self.estimator is not None:
            return f"import caviar as cv\ncv.{self.estimator!r}.fit({'counts' if self.vocabulary else 'X'})"
        posterior = self.posterior
        arguments = ["data", *self._arguments()]
        names = [leaf.name for leaf in posterior.model.leaves]
        arrays = (posterior.data_summary or {}).get("arrays", dict.fromkeys(names))
        entries = ", ".join(f"{name!r}: ..." for name in arrays)
        return (
            f"import caviar as cv\n"
            f'model = cv.load("MODEL.caviar").model\n'
            f"data = {{{entries}}}\n"
            f"posterior = model.fit({', '.join(arguments)})"
        )

    def _arguments(self) -> list[str]:
        """Return the arguments of the fit; for a file of an earlier version, those that its posterior shows."""
        kept = (self.posterior.data_summary or {}).get("arguments")
        if kept is not None:
            return [f"{name}={'...' if own == '...' else repr(own)}" for name, own in kept.items()]
        evaluator, n_starts = self.posterior._evaluator, len(self.posterior.restart_elbos)
        found = [f"n_restarts={n_starts}"] if n_starts > 1 else []
        found += [f"point={list(evaluator.point)!r}"] if evaluator.point else []
        if evaluator.factors is not None:
            found.append(f"factors={[list(group) for group in evaluator.factors]!r}")
        return found

    def _remarks(self) -> list[str]:
        """Return what has to be known to fit the same again."""
        if self.about.get("command"):
            return []
        if self.estimator is None:
            arguments = (self.posterior.data_summary or {}).get("arguments")
            if arguments is None:
                return [
                    "The file keeps the model and its posterior, not the data. It is of an earlier version, which did "
                    "not keep the arguments of fit: give the seed, max_iter and tol that were given then."
                ]
            remarks = ["The file keeps the model, its posterior and the arguments of fit, not the data."]
            if "seed" not in arguments:
                remarks.append("No seed was given: another run may begin, and end, elsewhere.")
            return remarks
        if self.estimator.random_state is None:
            return ["No random_state was given: another run may begin, and end, elsewhere."]
        return []


class MixedModelSubject(StatedSubject):
    """A mixed model: its effects come first."""

    estimator: Any

    sections = (Trust(), Effects(), Checks(), Rows(), *ABOUT_THE_MODEL)

    def __init__(self, fitted: Any, data: Any, source: str | None) -> None:
        super().__init__(fitted, data, source)
        self._table = None if data is None else Table.of(data)

    def quality(self) -> list[dict[str, Any]]:
        return columns_of_formula(self.estimator, self._table)

    @cached_property
    def figures(self) -> list[Figures]:
        """Those of the posterior, without the places of new groups, which have no rows."""
        return [
            own.along_first(range(len(own.mean) - 1)) if own.labels and NEW in own.labels[0][-1:] else own
            for own in figures_of(self)
        ]

    @property
    def group_sizes(self) -> dict[str, int]:
        return {name: len(own) for name, own in self.estimator.groups_.items()}

    def heading(self) -> list[tuple[str, str]]:
        model = self.estimator
        groups = [f"{size:,} of {name}" for name, size in self.group_sizes.items()]
        facts = [("Formula", model.formula), ("Family", model.family), ("Rows", f"{model.n_rows_:,}")]
        return [*self.origin, *facts, *([("Groups", ", ".join(groups))] if groups else [])]


class MixedMixtureSubject(StatedSubject):
    """A mixture of numbers, categories and counts: the profiles of its clusters come first."""

    estimator: Any

    sections = (Trust(), Profiles(), Checks(), Rows(), *ABOUT_THE_MODEL)

    def heading(self) -> list[tuple[str, str]]:
        mixture = self.estimator
        used = int((mixture.weights_ >= 0.005).sum())
        n_clusters = (
            f"{used:,}" if used == len(mixture.weights_) else f"{used:,} in use of {len(mixture.weights_):,}"
        )
        kinds = [(mixture.kinds_.count(kind), kind) for kind in dict.fromkeys(mixture.kinds_)]
        several = {"number": "numbers", "category": "categories", "count": "counts"}
        columns = ", ".join(f"{count} {several[kind] if count > 1 else kind}" for count, kind in kinds)
        return [*self.origin, ("Rows", self.n_rows), ("Columns", columns), ("Clusters", n_clusters)]


def _check_data(posterior: Posterior, data: Any) -> None:
    if data is not None and not isinstance(data, Mapping):
        raise ParameterError(
            f"data of a posterior are a table, or a mapping from the names of arrays to their values, as for fit; got "
            f"{type(data).__name__}"
        )
    for leaf in posterior.model.leaves:
        if data is not None and leaf.name not in data:
            raise DataError(
                f"the data lack '{leaf.name}', which the model observes: the report compares with it"
            )
