"""Print digests of what the library of a source folder computes: ``digests.py --source PATH/src --output FILE``.

Each case is a fit, or several, through the public interface; each figure of its result (trace, factors, densities, ...)
gets a digest of its bytes and a few of its numbers, so that a difference between two sources can be sized. Digests
depend on the processor and on BLAS: two sources are compared on one machine, which is what ``compare.py`` does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["digest_of", "figures_of_estimator", "figures_of_posterior"]

TESTS = Path(__file__).resolve().parents[1]

FACTOR = (
    *("natural", "expected_statistics", "log_partition", "mean", "variance", "covariance", "probabilities"),
    *("concentration", "shape", "rate", "df", "inverse_scale", "mean_precision", "precision", "a", "b"),
)
"""Public attributes of factors; each factor has some of them."""

_PROBES = 8


def digest_of(value: Any) -> list[Any]:
    """Return the digest of a value's bytes, with numbers to size a difference by."""
    content, numbers = hashlib.sha256(), []
    for name, array in _arrays(value, ""):
        content.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        content.update(
            np.ascontiguousarray(array).tobytes() if array.dtype.kind != "O" else repr(array).encode()
        )
        if array.dtype.kind in "fiub" and array.size:
            numbers += _probes(array)
    return [content.hexdigest()[:16], numbers]


def _arrays(value: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    if isinstance(value, Mapping):
        for key in value:
            yield from _arrays(value[key], f"{name}.{key}")
    elif isinstance(value, tuple | list):
        for i, part in enumerate(value):
            yield from _arrays(part, f"{name}.{i}")
    else:
        yield name, np.asarray(value)


def _probes(array: np.ndarray) -> list[float]:
    """Return numbers from all over an array, and two sums that every number of it enters."""
    flat = np.where(np.isfinite(array), array, 0.0).astype(float).ravel()
    chosen = flat[np.linspace(0, flat.size - 1, min(_PROBES, flat.size)).round().astype(int)]
    return [*chosen.tolist(), float(flat.sum()), float(np.abs(flat).sum())]


def figures_of_factor(factor: Any) -> dict[str, Any]:
    """Return the public figures that a factor has."""
    found = {}
    for name in FACTOR:
        try:
            value = getattr(factor, name, None)
        except Exception as error:  # noqa: BLE001 (any error at all is a figure)
            value = type(error).__name__
        if value is not None and not callable(value):
            found[name] = value
    return found


def _attempt(make: Callable[[], Any]) -> Any:
    """Return what a function gives, or the class of its error."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 (any error at all is a figure)
        return type(error).__name__


def figures_of_posterior(posterior: Any, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the figures of a posterior; with ``data`` those of rows too."""
    found = {
        "trace": posterior.elbo_trace,
        "end": [str(posterior.status), posterior.n_iter, posterior.restart_elbos],
        "terms": posterior.elbo_terms,
        "draws": _attempt(lambda: posterior.sample(2, seed=0)),
    }
    for name in posterior:
        found[f"global {name}"] = figures_of_factor(posterior[name])
    if data is None:
        return found
    found["elbo at"] = _attempt(lambda: posterior.elbo_at({}, data))
    found["log predictive"] = _attempt(lambda: posterior.log_predictive(data))
    local = _attempt(lambda: posterior.local(data))
    if isinstance(local, str):
        return {**found, "local": local}
    for name in local:
        found[f"local {name}"] = figures_of_factor(local[name])
    last = posterior.model.leaves[-1].name
    rest = {name: value for name, value in data.items() if name != last}
    predicted = _attempt(lambda: posterior.predict(rest)[last])
    found["predict"] = (
        [predicted.mean, predicted.standard_deviation]
        if hasattr(predicted, "standard_deviation")
        else str(predicted)
    )
    return found


def figures_of_estimator(estimator: Any, X: Any) -> dict[str, Any]:
    """Return the fitted attributes of an estimator that are numbers, and what its methods say of rows."""
    found: dict[str, Any] = {}
    for name in sorted(set(dir(estimator))):
        if name.endswith("_") and not name.startswith("_"):
            value = _attempt(lambda name=name: getattr(estimator, name))
            if isinstance(value, int | float | np.ndarray | np.generic):
                found[name] = value
    for method in ("predict_proba", "score_samples", "transform", "perplexity"):
        if hasattr(estimator, method):
            found[method] = _attempt(lambda method=method: getattr(estimator, method)(X))
    return found


def run(name: str, case: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the digests of a case by figure; the class of its error, where it has one, and of its warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            figures = case()
        except AssertionError:
            raise AssertionError(f"case {name!r} does not do what it is for") from None
        except Exception as error:  # noqa: BLE001 (any error at all is a figure)
            figures: dict[str, Any] = {"error": type(error).__name__}
    figures["warnings"] = sorted({warning.category.__name__ for warning in told})
    return {figure: digest_of(value) for figure, value in figures.items()}


def main() -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="folder that has the package caviar")
    parser.add_argument("--output", type=Path, help="JSON file; without it nothing is written")
    parser.add_argument("-k", default="", help="regular expression that a case's name contains")
    parser.add_argument("--quick", action="store_true", help="a subset that takes about half a minute")
    parser.add_argument("--threads", type=int, default=1, help="of the fits that do not say how many")
    parser.add_argument("--times", action="store_true", help="print the seconds of each case")
    asked = parser.parse_args()
    sys.path[:0] = [str(asked.source.resolve()), str(TESTS), str(Path(__file__).parent)]
    import caviar

    home = Path(str(caviar.__file__)).resolve()
    if asked.source.resolve() not in home.parents:
        raise SystemExit(f"caviar comes from {home}, not from {asked.source}")
    from cases import all_cases

    found = {}
    for name, (is_quick, case) in all_cases(asked.threads).items():
        if re.search(asked.k, name) and (is_quick or not asked.quick):
            began = time.perf_counter()
            found[name] = run(name, case)
            if asked.times:
                print(f"{time.perf_counter() - began:8.3f}  {name}", flush=True)
    failed = [name for name, figures in found.items() if "error" in figures]
    if failed:
        print(f"these end in an error: {failed}", file=sys.stderr)
    if asked.output is not None:
        asked.output.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
