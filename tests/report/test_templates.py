"""Templates escape what they are given, and say nothing that a section did not gather."""

import re
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

import caviar as cv
from caviar.report.html.mixture.subject import MixtureSubject
from caviar.report.html.page import SequencesSubject, TopicsSubject, gather
from caviar.report.html.section import rendered
from caviar.report.html.stated.subject import MixedMixtureSubject, MixedModelSubject, StatedSubject

TEMPLATES = {
    path.name: path.read_text(encoding="utf-8")
    for path in (files("caviar.report.html") / "templates").iterdir()
    if path.name.endswith(".html")
}
SUBJECTS = (
    MixtureSubject,
    MixedMixtureSubject,
    MixedModelSubject,
    SequencesSubject,
    StatedSubject,
    TopicsSubject,
)
SECTIONS = {section.template: section for own in SUBJECTS for section in own.sections}


def test_only_what_the_page_makes_itself_is_not_escaped():
    unescaped = {
        name: re.findall(r"(\w+) \| safe", text) for name, text in TEMPLATES.items() if "safe" in text
    }
    assert unescaped == {"page.html": ["policy", "style", "figures", "script"]}
    assert not any("autoescape" in text for text in TEMPLATES.values())


def test_every_template_is_that_of_a_section():
    assert set(TEMPLATES) == {*SECTIONS, "page.html", "macros.html"}
    for template, section in SECTIONS.items():
        assert f'm.section("{section.name}"' in TEMPLATES[template]


def test_a_finding_with_markup_is_text():
    findings = [{"level": "good", "title": "<b>", "text": "a & b"}]
    found = rendered("trust.html", findings=findings, verdict={"level": "good", "sentence": "<i>"})
    assert "&lt;b&gt;" in found
    assert "a &amp; b" in found
    assert "<i>" not in found


def test_what_no_section_gathered_is_an_error():
    with pytest.raises(Exception, match="'findings' is undefined"):
        rendered("trust.html", verdict={"level": "good", "sentence": ""})


@pytest.mark.slow
def test_mixed_columns_have_the_page_of_a_posterior():
    penguins = cv.datasets.load_penguins()
    mixture = cv.MixedMixture(2, random_state=0, max_iter=5, tol=1.0).fit(penguins)
    page = cv.report.gather(mixture, penguins)
    assert page["fit"]["kind"] == "Bayesian mixture of mixed columns"
    assert page["fit"]["call"].endswith("cv.MixedMixture(max_iter=5, random_state=0, tol=1.0).fit(X)")
    # the label of the rows is called by its meaning, not by its name in the model
    titles = {own["title"] for own in page["findings"]}
    assert titles & {"The cluster is clear", "The cluster is uncertain"}
    places = [entry["at"] for entry in page["entries"] if entry["variable"] == "sex probabilities"]
    assert places == ["female, component 0", "male, component 0", "female, component 1", "male, component 1"]
    assert [column["name"] for column in page["quality"]] == list(penguins.columns)
    assert "Bayesian mixture of mixed columns" in cv.report.page_of(mixture)


@pytest.mark.usefixtures("figures_of_factors")
def test_names_of_columns_may_have_dots():
    """As in R's iris: neither the variable nor a part of it ends at a dot within its name."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["Sepal.Length", "Petal.Width"])
    table["The.species"] = np.repeat(["setosa", "virginica"], 20)
    mixture = cv.MixedMixture(2, random_state=0, max_iter=5, tol=1.0).fit(table)
    assert "Sepal.Length mean" in cv.report.page_of(mixture, table)
    quoted = cv.MixedModel("`Sepal.Length` ~ `Petal.Width` + (1 | `The.species`)").fit(table)
    model = cv.MixedModel("Sepal.Length ~ Petal.Width + (1 | The.species)").fit(table)
    assert model.elbo_ == quoted.elbo_
    page = gather(model, table)
    assert [line["name"] for line in page["quality"]] == list(table.columns)
    assert "The.species" in cv.report.page_of(model)
    theta = cv.NormalGamma("a.theta", 0.0, 1.0, 1.0, 1.0)
    stated = cv.Model(cv.Normal("a.x", theta, plates=cv.Plate("the.rows"))).fit({"a.x": [0.0, 1.0, 3.0]})
    assert "a.theta.mean" in cv.report.page_of(stated, {"a.x": [0.0, 1.0, 3.0]})


def test_variables_have_the_names_of_the_columns_and_of_the_summary():
    """They had those of the stated model: age_theta.mean, theta.precision."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=30), "school": rng.choice(["Adams", "Lincoln"], 30)})
    mixed = cv.MixedMixture(2, random_state=0, max_iter=5, tol=1.0, uncertainty="mean_field").fit(table)
    states = cv.HiddenMarkovModel(2, random_state=0, max_iter=5, tol=1.0, uncertainty="mean_field")
    for fitted in (mixed, states.fit(table[["age"]])):
        page = cv.report.gather(fitted)
        named = list(dict.fromkeys(entry["variable"] for entry in page["entries"]))
        told = list(dict.fromkeys(row.variable for row in fitted.summary().rows))
        assert [name for name in named if not name.endswith(" as sd")] == told
        assert {name.removesuffix(" as sd") for name in named} == set(told)
        drawn = {own["name"] for kind in ("intervals", "cells") for own in page["pictures"][kind]}
        assert drawn <= set(named)
        assert not any("theta" in name for name in {*named, *drawn})
        assert "theta" not in page["fit"]["interval_remark"]
        for part in (page["facts"], page["fit"]["terms"], page["statement"]):
            assert "theta" not in str(part)
        parents = {line["name"]: line["law"] for line in page["statement"]}
        location = "age mean" if fitted is mixed else "means"
        assert any(f"mean = {location}[" in law for law in parents.values())
        assert any(name.startswith(f"{location} and ") for name in parents)
