"""What asks a part of a model for a value, an answer or a length is refused, with what to write."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import caviar as cv

OBS, KIND = cv.Plate("obs"), cv.Plate("kind", 2)
A = cv.Normal("a", 0.0, 1.0, plates=OBS)
Z = cv.Categorical("z", [0.5, 0.5], plates=OBS)
MU = cv.Normal("mu", 0.0, 1.0, plates=KIND)
X = cv.Data("x", plates=OBS)
PARTS = {"variable": A, "label": Z, "data": X, "sum": A + 2.0 * X, "chosen": MU[Z]}

ASKED = {
    "if": (bool, "neither true nor false"),
    "not": (lambda own: not own, "neither true nor false"),
    "and": (lambda own: own and 1, "neither true nor false"),
    "or": (lambda own: own or 1, "neither true nor false"),
    "any": (lambda own: any([own]), "neither true nor false"),
    "==": (lambda own: own == 3, "has no value that could be compared with 3"),
    "!=": (lambda own: own != 1.5, "has no value that could be compared with 1.5"),
    "== a text": (lambda own: own == "x", "has no value that could be compared with 'x'"),
    "== an array": (lambda own: own == np.ones(2), "has no value that could be compared with"),
    "an array ==": (lambda own: np.ones(2) == own, "has no value that could be compared with"),
    "np.equal": (lambda own: np.equal(own, 1), "has no value that could be compared with 1"),
    "<": (lambda own: own < 0, "cannot be compared"),
    "min": (lambda own: min(own, 0), "cannot be compared"),
    "in": (lambda own: 3 in own, "contains nothing"),
    "len": (len, r"its repetitions are \.plates"),
    "list": (list, "is not a list|can be indexed|cannot be indexed"),
    "float": (float, "NumPy cannot compute with it"),
    "int": (int, "NumPy cannot compute with it"),
    "complex": (complex, "NumPy cannot compute with it"),
    "range": (range, "NumPy cannot compute with it"),
    "asarray": (np.asarray, "NumPy cannot compute with it"),
    "a list of it": (lambda own: np.array([own, own]), "NumPy cannot compute with it"),
    "math.exp": (math.exp, "NumPy cannot compute with it"),
    "as a percentage": ("{:.0%}".format, "has no number before a fit that could be written as '.0%'"),
    "f-string": (lambda own: f"{own:.2f}", "has no number before a fit that could be written as '.2f'"),
    "round": (round, "round of .* has no update"),
    "abs": (abs, "absolute value of .* has no update"),
    "//": (lambda own: own // 2, "a division without rest of .* has no update"),
    "2 //": (lambda own: 2 // own, "a division without rest of .* has no update"),
    "%": (lambda own: own % 2, "the rest of a division of .* has no update"),
    "&": (lambda own: own & 1, r"table\[z, v\]"),
    "|": (lambda own: own | own, r"table\[z, v\]"),
    "~": (lambda own: ~own, "cannot be negated"),
    "assignment": (lambda own: own.__setitem__(0, 1.0), "pass them to the fit"),
    "no index": (lambda own: own[()], "indexed|2 indices"),
}


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("asked", ASKED)
def test_a_value_is_refused(kind, asked):
    function, words = ASKED[asked]
    with pytest.raises(cv.ModelError, match=words):
        function(PARTS[kind])


@pytest.mark.parametrize("kind", PARTS)
def test_what_python_needs_of_objects_stays(kind):
    """Identity, hashes, texts, copies; a plus sign and a test for None."""
    own = PARTS[kind]
    assert own in [Z, own]
    assert own is not None
    assert {own: 1}[own] == 1
    assert f"{own}" == str(own) == repr(own)
    assert repr(copy.deepcopy(own)) == repr(pickle.loads(pickle.dumps(own))) == repr(own)
    assert repr(+own) == repr(0 + own)


def test_an_indicator_is_a_bernoulli_and_not_a_comparison():
    with pytest.raises(cv.ModelError, match="Multiply what may be absent by a Bernoulli"):
        cv.Normal("y", MU[Z] * (Z == 1), 1.0, plates=OBS)


def test_unknown_shares_are_refused():
    """And what the message offers is accepted."""
    with pytest.raises(cv.ConjugacyError, match=r"4\.0 \* StickBreaking\('each', 1\.0, truncation=3\)"):
        cv.Dirichlet("p", 4.0 * cv.Dirichlet("each", np.ones(3)), plates=OBS)
    each = cv.Gamma("each", 1.0, 1.0, plates=cv.Plate("category", 3))
    cv.Dirichlet("p", each, plates=OBS)
    with pytest.raises(cv.ModelError, match=r"times one known number; Constant\('shares'\) is more"):
        cv.Dirichlet("p", each * cv.Constant("shares", np.ones(3)), plates=OBS)
    alpha = cv.Gamma("alpha", 1.0, 1.0)
    cv.Dirichlet("p", alpha * cv.Constant("shares", [0.5, 0.3, 0.2]), plates=OBS)
    cv.Dirichlet("p", 4.0 * cv.StickBreaking("each", 1.0, truncation=3), plates=OBS)
    cv.Dirichlet("p", alpha * cv.StickBreaking("each", 1.0, truncation=3), plates=OBS)
