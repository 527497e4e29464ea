"""What a small fit does beside its iterations is few calls, and a second fit of one statement only fills in values.

Calls of the library are counted, not timed, so that a busy machine does not matter. The numbers may only shrink.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caviar as cv
from caviar.fitting import model as fitting
from caviar.fitting import restarts

SOURCE = str(Path(cv.__file__).parent)
X = cv.datasets.load_faithful().values


class Calls:
    """Counts the functions of the library that run, except inside of what is left out."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        self._is_left_out = False

    def of(self, function: Callable[[], object]) -> int:
        self.found.clear()
        before = sys.getprofile()
        sys.setprofile(self._count)
        try:
            function()
        finally:
            sys.setprofile(before)
        return sum(self.found.values())

    def leaving_out(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **keywords: Any) -> Any:
            self._is_left_out = True
            try:
                return function(*arguments, **keywords)
            finally:
                self._is_left_out = False

        return run

    def _count(self, frame: Any, event: str, _: object) -> None:
        if event == "call" and not self._is_left_out and frame.f_code.co_filename.startswith(SOURCE):
            self.found[frame.f_code.co_filename] += 1


@pytest.mark.parametrize(
    ("estimator", "most"), [(cv.BayesianGaussianMixture, 1615), (cv.GaussianMixture, 1353)]
)
def test_all_but_the_ascent_of_a_fit_is_few_calls(
    estimator: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls()
    monkeypatch.setattr(fitting, "ascend", calls.leaving_out(fitting.ascend))
    for _ in range(4):
        estimator(2, random_state=0).fit(X)
    assert calls.of(lambda: estimator(2, random_state=0).fit(X)) <= most


@pytest.mark.parametrize("estimator", [cv.BayesianGaussianMixture, cv.GaussianMixture])
def test_predictions_of_one_row_are_few_calls(estimator: Any) -> None:
    fitted, calls = estimator(2, random_state=0).fit(X), Calls()
    fitted.predict(X[:1])
    fitted.score_samples(X)
    assert calls.of(lambda: fitted.predict(X[:1])) <= 125
    assert calls.of(lambda: fitted.score_samples(X)) <= 55


def ten_variables() -> tuple[cv.Model, dict[str, Any]]:
    obs = cv.Plate("obs")
    tau = [cv.Gamma(f"tau{i}", 1.0, 1.0) for i in range(2)]
    means = [cv.Normal(f"m{i}", 0.0, 0.1) for i in range(4)]
    leaves = [cv.Normal(f"y{i}", means[i], tau[i % 2], plates=obs) for i in range(4)]
    ys = np.random.default_rng(0).normal(size=(4, 100))
    return cv.Model(*leaves), {f"y{i}": y for i, y in enumerate(ys)}


def test_a_statement_and_its_compilation_are_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()
    for module, name in ((fitting, "ascend"), (restarts, "given_start")):
        monkeypatch.setattr(module, name, calls.leaving_out(getattr(module, name)))

    def fit() -> None:
        model, data = ten_variables()
        model.fit(data, init={"tau0": 1.0, "tau1": 1.0}, max_iter=1, tol=0)

    for _ in range(4):
        fit()
    assert calls.of(ten_variables) <= 410
    assert calls.of(fit) <= 1191
