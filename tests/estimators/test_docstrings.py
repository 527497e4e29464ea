"""Every argument of an estimator is documented once, in the order of the signature, with all shared paragraphs."""

import inspect
import re

import pytest

import caviar as cv
from caviar.estimators.arguments.paragraphs import PARAGRAPHS, with_paragraphs

CLASSES = [
    cv.BayesianGaussianMixture,
    cv.GaussianMixture,
    cv.HiddenMarkovModel,
    cv.KnownVarianceMixture,
    cv.LatentDirichletAllocation,
    cv.MixedMixture,
]


def documented(text, section):
    """Return the names that a section of a docstring documents."""
    body = re.search(
        rf"^{section}\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", inspect.cleandoc(text), re.DOTALL | re.MULTILINE
    )
    names = [] if body is None else re.findall(r"^(\*{0,2}\w.*)$", body[1], re.MULTILINE)
    return [name.lstrip("*") for line in names for name in line.split(", ")]


@pytest.mark.parametrize("estimator_class", CLASSES)
def test_the_docstring_has_the_arguments_of_the_signature(estimator_class):
    arguments = list(inspect.signature(estimator_class).parameters)
    told = documented(estimator_class.__doc__, "Parameters")
    assert sorted(told) == sorted(arguments)
    assert not set(told) & set(documented(estimator_class.__doc__, "Attributes"))


@pytest.mark.parametrize("estimator_class", CLASSES)
def test_methods_have_the_arguments_of_their_signatures(estimator_class):
    for name, method in inspect.getmembers(estimator_class, inspect.isfunction):
        if name.startswith("_") or not method.__module__.startswith("caviar."):
            continue
        text = inspect.getdoc(method)
        told = documented(text, "Parameters")
        expected = [own for own in inspect.signature(method).parameters if own != "self"]
        assert not told or sorted(told) == sorted(expected), name
        assert "{" not in re.sub(
            r":math:`[^`]*`|``[^`]*``|\.\. math::.*?\n\n|>>>.*", "", text, flags=re.DOTALL
        ), name


@pytest.mark.parametrize("estimator_class", CLASSES)
def test_every_shared_paragraph_is_in_its_place(estimator_class):
    for text in (estimator_class.__doc__, estimator_class.fit.__doc__):
        assert not re.search(r"^ *\{\w+\}$", text, re.MULTILINE)
        # what a page of the reference reads is the same text, with its paragraphs put in again
        assert with_paragraphs(text) == text
    for name in ("n_init", "n_jobs", "executor"):
        if name != "executor" or estimator_class is not cv.LatentDirichletAllocation:
            assert " ".join(PARAGRAPHS[name].split()) in " ".join(estimator_class.__doc__.split())
