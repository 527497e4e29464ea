"""Plates, sizes and shapes that disagree are refused; the message names the plate, the sizes and what to write."""

import numpy as np
import pytest

import caviar as cv

OBS, COMPONENT = cv.Plate("obs"), cv.Plate("component", 3)


def _label(k=3, plates=OBS):
    return cv.Categorical("z", np.full(k, 1 / k), plates=plates)


def _means(plates=COMPONENT):
    return cv.Normal("m", 0, 1, plates=plates)


STATEMENTS = {
    "a parent with a plate that the child lacks": (
        lambda: cv.Normal("x", _means(), 1.0, plates=OBS),
        ["'mean' of Normal 'x' is repeated over plate 'component'", "add plate 'component' to 'x'", "m[z]"],
    ),
    "a label with a plate that the child lacks": (
        lambda: cv.Normal("x", _means()[_label()], 1.0),
        ["repeated over plate 'obs'", "'z' chooses once for each", "add plate 'obs' to 'x'"],
    ),
    "two plates of one name": (
        lambda: cv.Normal("x", cv.Normal("m", 0, 1, plates=cv.Plate("obs")), 1.0, plates=OBS),
        ["two Plate objects are both named 'obs'", "use the same object"],
    ),
    "more components than categories": (
        lambda: _means()[_label(2)],
        ["'z' has 2 categories", "'component' has 3", "must be equal"],
    ),
    "nothing to choose from": (
        lambda: _means(())[_label(2)],
        ["'m' has no plate that 'z' could choose from", "plates=Plate('component', 2)"],
    ),
    "a chosen plate without a size": (
        lambda: _means(cv.Plate("c"))[_label(2)],
        ["plate 'c' of 'm' is indexed by 'z' and needs a size", "Plate('c', 2)"],
    ),
    "two plates to choose from": (
        lambda: cv.Normal("x", _means((cv.Plate("a", 2), cv.Plate("b", 2)))[_label(2)], 1.0, plates=OBS),
        ["'z' could choose from any of the plates 'a', 'b' of 'm'", "give 'x' all of these but the one"],
    ),
    "one label twice": (
        lambda: (lambda z: _means((cv.Plate("a", 2), cv.Plate("b", 2)))[z, z])(_label(2)),
        [
            "'z' is used twice in m[z, z], which is the diagonal of 'm'",
            "State the diagonal as a variable with one plate",
        ],
    ),
    "a plate twice": (
        lambda: cv.Normal("x", 0, 1, plates=(OBS, OBS)),
        ["'x' names a plate twice: obs, obs"],
    ),
    "a name instead of a plate": (
        lambda: cv.Normal("x", 0, 1, plates=("obs",)),
        ["plates= of 'x' takes Plate objects; got 'obs'", "Write Plate('name', size)"],
    ),
    "vectors of different lengths": (
        lambda: cv.MultivariateNormal("x", np.zeros(3), np.eye(2)),
        ["'precision' of MultivariateNormal 'x' has length 2", "dimension 3"],
    ),
    "no dimension at all": (
        lambda: cv.MultivariateNormal("x", 0, 0),
        ["dimension of 'x' is not determined", "mean=np.full(D, 0.0)"],
    ),
    "a Wishart without a dimension": (
        lambda: cv.Wishart("W", 3, 0),
        ["dimension D of 'W' does not follow", "a D x D matrix"],
    ),
    "a number for a precision matrix": (
        lambda: cv.MultivariateNormal("x", np.zeros(2), 3.0),
        ["must be a 2 x 2 matrix", "3.0 * np.eye(2)"],
    ),
    "a diagonal for a precision matrix": (
        lambda: cv.MultivariateNormal("x", np.zeros(2), np.ones(2)),
        ["'precision' of MultivariateNormal 'x' must be a 2 x 2 matrix", "(2,)"],
    ),
    "an array with too many axes": (
        lambda: cv.Normal("x", np.zeros((2, 3)), 1.0, plates=OBS),
        ["'mean' of Normal 'x' has shape (2, 3)", "'x' has plates: obs", "plates=Plate('component', 2)"],
    ),
    "an array of another length than its plate": (
        lambda: cv.Normal("m", np.zeros(2), 1.0, plates=COMPONENT),
        ["plate 'component' has size 3", "2"],
    ),
    "a plate within a plate within a plate": (
        lambda: cv.Plate("token", within=cv.Plate("chapter", within=cv.Plate("book"))),
        [
            "plate 'token' lies within 'chapter', which lies within 'book'",
            "Give 'chapter' a size instead",
            "parent[Data('book', plates=chapter)]",
        ],
    ),
    "a constant with too few axes": (
        lambda: cv.Constant("c", 1.0, plates=COMPONENT),
        ["Constant 'c' has 1 plates", "only 0 axes"],
    ),
    "a constant of another size than its plate": (
        lambda: cv.Constant("c", [1.0, 2.0], plates=COMPONENT),
        ["plate 'component' has size 3", "2 rows in Constant 'c'"],
    ),
    "a constant of no known rank": (
        lambda: cv.Constant("c", np.zeros((3, 2, 4)), plates=COMPONENT),
        ["numbers, vectors or square matrices", "(2, 4)"],
    ),
    "a constant of the wrong rank": (
        lambda: cv.Normal(
            "x", cv.Constant("c", np.zeros((3, 2)), plates=COMPONENT)[_label()], 1.0, plates=OBS
        ),
        ["'mean' of Normal 'x' must be a number", "'c' is a vector"],
    ),
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_disagreeing_statement_is_refused(kind):
    """The statement is refused as soon as it is made, by a message with the names and sizes to mend it by."""
    state, facts = STATEMENTS[kind]
    with pytest.raises(cv.PlateError) as caught:
        state()
    for fact in facts:
        assert fact in str(caught.value)


def test_what_the_message_about_two_nestings_advises_works():
    """Tokens within chapters, and known labels instead of the outer nesting."""
    chapter, book = cv.Plate("chapter", 3), cv.Plate("book", 2)
    own = cv.Normal("own", 0.0, 1.0, plates=book)[cv.Data("book", plates=chapter)]
    level = cv.Normal("level", own, 1.0, plates=chapter)
    x = cv.Normal("x", level, 1.0, plates=cv.Plate("token", within=chapter))
    posterior = cv.Model(x).fit({"x": [[1.0, 2.0], [3.0], [9.0]], "book": [0, 0, 1]})
    assert posterior["own"].mean[1] > posterior["own"].mean[0] > 0


def test_label_chooses_the_plate_that_the_child_lacks():
    """Two plates of the same size are told apart by the child, which has all of them but the chosen one."""
    a, b = cv.Plate("a", 2), cv.Plate("b", 2)
    for kept, chosen in ((a, b), (b, a)):
        x = cv.Normal("x", _means((a, b))[_label(2)], 1.0, plates=(OBS, kept))
        assert x.slots["mean"].expression.plate is chosen


def _mixture():
    mean = cv.MultivariateNormal("mean", np.zeros(2), np.eye(2), plates=COMPONENT)
    return cv.Model(cv.MultivariateNormal("x", mean[_label()], np.eye(2), plates=OBS))


def _noisy():
    return cv.Model(cv.Normal("x", 0.0, cv.Data("noise", plates=OBS), plates=OBS))


DATA = {
    "numbers for vectors": (
        lambda: _mixture().fit({"x": np.zeros(4)}),
        ["'x' must have 2 axes (obs, D)", "shape (4,)"],
    ),
    "vectors of another length": (
        lambda: _mixture().fit({"x": np.zeros((4, 3))}),
        ["'x' has dimension 2", "each value in its data has shape (3,)"],
    ),
    "arrays of different numbers of rows": (
        lambda: _noisy().fit({"x": [1.0, 2.0, 3.0], "noise": [1.0, 2.0]}),
        ["plate 'obs' has 2 rows in 'noise' but 3 in 'x'"],
    ),
    "another number of rows than declared": (
        lambda: cv.Model(cv.Normal("x", _means(()), 1, plates=cv.Plate("day", 3))).fit({"x": [1.0, 2.0]}),
        ["plate 'day' has 2 rows in 'x' but 3 in its declaration"],
    ),
    "a data plate that is none": (
        lambda: _mixture().fit({"x": np.zeros((4, 2))}, data_plate="rows"),
        ["data_plate='rows' is not a plate of the model", "obs, component"],
    ),
}


@pytest.mark.parametrize("kind", DATA)
def test_disagreeing_data_are_refused(kind):
    """Data of another shape than the statement's are refused, with both sizes."""
    fit, facts = DATA[kind]
    with pytest.raises(cv.PlateError) as caught:
        fit()
    for fact in facts:
        assert fact in str(caught.value)


def test_size_that_nothing_tells_is_refused():
    """A latent plate without a size and without data says what to write."""
    unknown = cv.Plate("group")
    top = cv.Normal("top", 0.0, cv.Gamma("tau", 1, 1, plates=unknown), plates=unknown)
    model = cv.Model(cv.Normal("x", 0.0, 1.0, plates=OBS), top)
    with pytest.raises((cv.PlateError, cv.DataError)) as caught:
        model.fit({"x": [1.0]})
    assert "top" in str(caught.value)
