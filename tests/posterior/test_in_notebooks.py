"""What notebooks show: the graph of a model, with each node inside its plates only; fitted estimators with a table."""

import functools
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest

import caviar as cv

SVG = "{http://www.w3.org/2000/svg}"
MODELS = {
    "mixture": cv.models.gaussian_mixture(3, 2),
    "chain": cv.models.poisson_hidden_markov_model(2, 3),
    "regression": cv.models.varying_coefficients(3, 4),
    "topics": cv.models.latent_dirichlet_allocation(3, 10),
}


def drawing(model):
    """Return centres of nodes by name, boxes by plate, and the ends of arrows."""
    root = ElementTree.fromstring(model._repr_html_().removeprefix("<div>").removesuffix("</div>"))
    words = [element for element in root.iter(f"{SVG}text") if element.get("text-anchor") == "middle"]
    centres = {word.text: (float(word.get("x")), float(word.get("y")) - 4.5) for word in words}
    boxes, children = {}, list(root)
    for element, after in pairwise(children):
        if element.get("rx") == "7":
            x, y, width, height = (float(element.get(name)) for name in ("x", "y", "width", "height"))
            boxes.setdefault(after.text, []).append((x, y, x + width, y + height))
    lines = [[float(line.get(name)) for name in ("x1", "y1", "x2", "y2")] for line in root.iter(f"{SVG}line")]
    return centres, boxes, lines


@pytest.mark.parametrize("name", MODELS)
def test_nodes_are_inside_their_plates_and_no_others(name):
    model = MODELS[name]
    centres, boxes, _ = drawing(model)
    nodes = {node.name: node for node in model.nodes if node.name in centres}
    assert set(centres) == set(model.variables) | {
        node.name for node in model.nodes if isinstance(node, cv.Data)
    }
    for own, (x, y) in centres.items():
        inside = {plate for plate, found in boxes.items() for a, b, c, d in found if a < x < c and b < y < d}
        assert inside == {plate.name for plate in nodes[own].plates}, own


def test_arrows_lead_from_parents_to_children():
    centres, _, lines = drawing(MODELS["mixture"])

    def nearest(x, y):
        return min(centres, key=lambda own: np.hypot(*(np.subtract(centres[own], (x, y)) / (2.5, 1))))

    found = {(nearest(a, b), nearest(c, d)) for a, b, c, d in lines}
    assert found == {("weights", "z"), ("z", "x"), ("mean", "x"), ("precision", "x")}


def test_names_are_escaped():
    html = cv.Model(cv.Normal("x<y", cv.Normal("a&b", 0, 1), 1.0, plates=cv.Plate("obs")))._repr_html_()
    assert "x&lt;y" in html
    assert "a&amp;b" in html


def test_fitted_estimators_show_what_was_learnt():
    X = cv.datasets.load_faithful().values
    mixture = cv.BayesianGaussianMixture(2, random_state=0)
    assert "95% interval" not in mixture._repr_html_()
    mixture.fit(X)
    table = mixture.summary(level=0.9, max_rows=2)
    assert str(table).startswith(f"Bayesian mixture of Gaussians: ELBO {mixture.elbo_:.6f} nats, converged")
    rows = {(row.variable, row.index): row for row in table.rows}
    mean = mixture.posterior_.mean("theta.mean")[0, 0]
    np.testing.assert_allclose(rows["means", "component 0, [0]"].mean, mean)
    assert mean == pytest.approx(mixture.means_[0, 0], abs=0.1 * mixture.means_sd_[0, 0])
    assert len(table.to_frame()) == len(table.rows)
    assert "95% interval" in mixture._repr_html_()
    assert "95% interval" in mixture._repr_mimebundle_()["text/html"]
    maximum = cv.GaussianMixture(2, random_state=0).fit(X)
    assert f"log-likelihood {maximum.elbo_:.6f} nats" in maximum.summary().title


def test_residuals_are_a_table_with_the_names_of_their_entries():
    obs = cv.Plate("obs")
    x = cv.MultivariateNormal("x", [0.0, 0.0], np.eye(2), plates=obs, names=["<a>", "b"])
    data = {"x": np.arange(24.0).reshape(12, 2)}
    weight = cv.Model(cv.Normal("y", cv.Normal("m", 0, 1), 1.0, plates=obs)).fit({"y": [1.0, 2.0, 4.0]})
    html = weight.residuals({"y": [1.0, 2.0, 4.0]})._repr_html_()
    assert html.count("<tr>") == 4
    assert "<td>2.25</td><td>2.012</td>" in html
    assert weight.residuals({"y": [1.0, 2.0, 4.0]}).to_frame().shape == (3, 5)
    mean = cv.MultivariateNormal("mean", [0.0, 0.0], np.eye(2), names=["<a>", "b"])
    x = cv.MultivariateNormal("x", mean, np.eye(2), plates=obs, names=["<a>", "b"])
    html = cv.Model(x).fit(data).residuals(data)._repr_html_()
    assert "&lt;a&gt;" in html
    assert "and 2 more rows" in html


def test_predictions_by_name_are_tables_under_their_names():
    obs = cv.Plate("obs")
    y = cv.Normal(
        "a<b",
        cv.dot(cv.Data("x", plates=obs), cv.MultivariateNormal("w", [0, 0], np.eye(2))),
        1.0,
        plates=obs,
    )
    x = np.c_[np.ones(6), np.arange(6.0)]
    html = cv.Model(y).fit({"x": x, "a<b": np.arange(6.0)}).predict({"x": x[:2]})._repr_html_()
    assert html.startswith("<p>a&lt;b</p><table>")
    assert "95% interval" in html


@functools.cache
def shown_in_a_notebook():
    """Return what users leave on the last line of a cell: name -> object."""
    x = cv.Normal("x", cv.Normal("m", 0, 0.1), cv.Gamma("tau", 2, 2), plates=cv.Plate("obs"))
    data = {"x": np.random.default_rng(0).normal(size=30)}
    posterior = cv.Model(x).fit(data)
    mixture = cv.models.normal_wishart_mixture(2, 2).fit(
        {"x": np.random.default_rng(0).normal(size=(30, 2))}, seed=0
    )
    groups = {"a<b": {"x": data["x"][:15]}, "c": {"x": data["x"][15:]}}
    density = cv.StudentMixture(
        np.ones(1), np.zeros((1, 2)), np.eye(2)[None], np.full(1, 4.0), feature_names=["u<v", "w"]
    )
    return {
        "posterior": posterior,
        "a factor": posterior["m"],
        "a joint factor": next(mixture[name] for name in mixture if "mean" in dir(mixture[name])),
        "rows": mixture.local({"x": np.zeros((2, 2))}),
        "diagnosis": posterior.diagnose(data, n_draws=100, seed=0),
        "evidence": posterior.evidence(data),
        "importance sample": posterior.importance_sample(data, n_draws=100, seed=0),
        "linear response": posterior.linear_response(data),
        "integrated": posterior.integrated(data, "tau"),
        "transformed": posterior.transformed(np.sqrt, "tau"),
        "check": cv.testing.check_model(posterior.model, data),
        "many": cv.fit_many(posterior.model, groups),
        "dataset": cv.datasets.load_faithful(),
        "density": density,
        "conditional": density.predict(np.array([[0.0]]), [1], given=[0]),
    }


def test_results_are_tables_with_their_figures():
    for name, own in shown_in_a_notebook().items():
        html = own._repr_html_()
        assert html.count("<table>") == html.count("</table>") >= 1, name
        ElementTree.fromstring(f"<div>{html}</div>")
        # colours and sizes are those of the notebook, light or dark
        assert "style" not in html, name
        assert "=array(" not in repr(own), name


def test_what_tables_of_results_say():
    shown = shown_in_a_notebook()
    mean = shown["posterior"]["m"].mean
    assert f"<td>{mean:.4g}</td>" in shown["a factor"]._repr_html_()
    assert f"{shown['diagnosis'].pareto_k:.2f}" in shown["diagnosis"]._repr_html_()
    assert f"{shown['evidence'].value:.3f}" in shown["evidence"]._repr_html_()
    assert "a&lt;b" in shown["many"]._repr_html_()
    assert "u&lt;v" in shown["density"]._repr_html_()
    assert "272 rows" in shown["dataset"]._repr_html_()
    assert f"{shown['integrated'].mean('tau'):.4g}" in shown["integrated"]._repr_html_()
    assert shown["linear response"].summary()._repr_html_() == shown["linear response"]._repr_html_()
