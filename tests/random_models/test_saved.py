"""Random models are saved and loaded to the last bit: statement, factors, and what a posterior does with rows."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from storage.likeness import assert_same_posterior

import caviar as cv

from .strategy import Drawn, examples, models


@examples(50)
@given(models(), st.integers(0, 2**16), st.booleans())
def test_a_loaded_posterior_is_the_saved_one(drawn: Drawn, which: int, apart: bool):
    """With some globals as point masses, and the hidden variables of a row in one factor or apart."""
    model, data = drawn.stated.model, drawn.data
    globals_ = list(model.fit(data, max_iter=0, seed=0))
    point = [name for i, name in enumerate(globals_) if which >> 2 * i & 3 == 3]
    try:
        posterior = model.fit(data, seed=0, max_iter=3, point=point, factors=[] if apart else None)
    except cv.CaviarError:
        # a missing mode, or a joint factor that cannot be taken apart
        return
    with tempfile.TemporaryDirectory() as folder:
        posterior.save(Path(folder) / "m.caviar")
        loaded = cv.load(Path(folder) / "m.caviar")
    assert_same_posterior(posterior, loaded, data)
