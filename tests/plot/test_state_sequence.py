"""States along time: the path is the most probable one, and each row is as high as its state is probable."""

import numpy as np
import pandas as pd
import pytest

import caviar as cv
from plot.fits import chain, steps, topics


def test_the_strip_is_the_most_probable_path():
    axes = cv.plot.state_sequence(chain(), steps())
    path = chain().local(steps())["s"].mode()
    covered = np.zeros(60)
    for state, bars in zip(np.unique(path), axes[1].collections, strict=False):
        for box in bars.get_paths():
            begin, end = np.round(box.get_extents().intervalx + 0.5).astype(int)
            assert np.all(path[begin:end] == state)
            covered[begin:end] += 1
    np.testing.assert_array_equal(covered, 1)


def test_each_row_is_as_high_as_its_state_is_probable():
    ax = cv.plot.state_sequence(chain(), steps())[2]
    shares = chain().local(steps())["s"].probabilities
    for line, area in enumerate(ax.collections):
        vertices = area.get_paths()[0].vertices
        for step in range(60):
            column = vertices[np.isclose(vertices[:, 0], step - 0.5), 1]
            height = (line + 0.45 - column.min()) / 0.9
            assert height >= shares[step, line] - 1e-9
        # steps: the area is the sum of the probabilities
        x, y = vertices.T
        area_of = 0.5 * abs(np.dot(x[:-1], y[1:]) - np.dot(x[1:], y[:-1]))
        np.testing.assert_allclose(area_of, 0.9 * shares[:, line].sum(), rtol=1e-6)


def test_time_is_that_of_the_rows_and_sequences_are_separated():
    axes = cv.plot.state_sequence(
        chain(),
        steps(),
        time=np.arange(60) / 10,
        time_label="time (s)",
        columns=["a", "b"],
        names=list("xyz"),
    )
    assert axes[2].get_xlabel() == "time (s)"
    np.testing.assert_allclose(axes[0].get_xlim(), (-0.05, 5.95))
    separators = [line.get_xdata()[0] for line in axes[0].lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose(separators, [2.95])
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), steps()["x"][:, 0])
    assert [label.get_text() for label in axes[2].get_yticklabels()] == list("xyz")
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["a", "b"]


def test_many_columns_are_a_heat_map_and_missing_entries_are_left_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 6)) + 3 * (np.arange(40) > 20)[:, None]
    data = {"x": x}
    posterior = cv.models.gaussian_hidden_markov_model(6, 2).fit(data, seed=0)
    ax = cv.plot.state_sequence(posterior, data)[0]
    (mesh,) = ax.collections[:1]
    np.testing.assert_allclose(mesh.get_array(), ((x - x.mean(axis=0)) / x.std(axis=0)).T)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(cv.ParameterError, match="responsibilities"):
        cv.plot.state_sequence(topics(), {"word": [np.array([0, 1])]})
    with pytest.raises(cv.ParameterError, match="rising"):
        cv.plot.state_sequence(chain(), steps(), time=np.zeros(60))
    with pytest.raises(cv.ParameterError, match="'s'"):
        cv.plot.state_sequence(chain(), steps(), variable="z")
    with pytest.raises(cv.ParameterError, match="'x'"):
        cv.plot.state_sequence(chain(), steps(), observed="y")


@pytest.mark.slow
def test_categories_are_named_and_estimators_show_no_names_of_code():
    words = np.array(["dry", "wet", "dry", "dry", "wet", "wet"] * 5)
    model = cv.HiddenMarkovModel(2, emission="categorical", random_state=0).fit(words[:, None])
    top = cv.plot.state_sequence(model, words[:, None])[0]
    assert [label.get_text() for label in top.get_yticklabels()] == ["dry", "wet"]
    assert top.lines[0].get_ydata()[:3].tolist() == [0, 1, 0]
    assert "wet, state 1" in str(model.posterior_.summary(max_rows=None))
    numbers = np.random.default_rng(0).normal(size=(20, 2))
    two = cv.HiddenMarkovModel(2, random_state=0).fit(numbers)
    assert cv.plot.state_sequence(two, numbers)[0].get_ylabel() == "value"
    assert "states, " in cv.plot.dendrogram(two, numbers).get_title()


@pytest.mark.parametrize("emission", ["gaussian", "poisson"])
def test_one_named_column_of_numbers_is_a_line(emission: str) -> None:
    rows = pd.DataFrame({"mood": np.repeat([0.0, 4.0, 1.0], 6)})
    hmm = cv.HiddenMarkovModel(2, emission=emission, random_state=0).fit(rows)
    top = cv.plot.state_sequence(hmm, rows)[0]
    low, high = top.get_ylim()
    assert top.get_ylabel() == "mood"
    assert low <= 0 < 4 <= high
    assert top.lines[0].get_linestyle() == "-"
