"""Data sets that break mixtures: what comes of a fit, beside scikit-learn's on the same rows.

    python benchmarks/torture.py [--max-iter 100] [--list]

The sets are those of ``tests/torture``; each is fitted with every covariance structure, ours in both forms and by EM,
scikit-learn's as BayesianGaussianMixture and GaussianMixture, with the same number of components and iterations and
otherwise the defaults of each. A table has a row for each kind of set; ``--list`` names the fits that went wrong.

- fitted: nothing is wrong with the fit;
- refused: an error that says what is wrong with the data or an argument, which for scikit-learn means any error of its
  validation; also where it has no way to take the data, such as missing entries;
- collapsed (ours): the fit says that a component under a flat prior is left with (almost) no rows;
- failed (ours): anything that ``tests/torture`` does not allow: see ``demands.py``;
- raised (scikit-learn): an error in the middle of the fit, mostly that a covariance is ill-defined and that
  ``reg_covar`` should be raised;
- not finite: NaN or infinities in parameters, bound, densities or responsibilities, or a covariance that is not
  positive definite;
- fell: the bound fell by more than rounding from one iteration to the next. What scikit-learn reports is a bound
  without constants, and of GaussianMixture the likelihood, which its ``reg_covar`` makes fall;
- warned: RuntimeWarnings of NumPy from inside a fit.

A fit with several faults counts in the first of these columns. scikit-learn's mixtures take no weights, so that these
sets are ours only.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import mixture
from sklearn.exceptions import ConvergenceWarning

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from torture.case import Case
from torture.demands import covariance_problems, outcome_of
from torture.registry import KINDS
from torture.shells import SHELLS

STRUCTURES = ("full", "tied", "diag", "spherical")
OURS = ("fits", "fitted", "refused", "collapsed", "failed")
THEIRS = ("fits", "fitted", "refused", "raised", "not finite", "fell", "warned")
_ROUNDING = 1e-9
"""Fall of a bound, relative to its size, that counts as rounding."""


def their_outcome(case: Case, estimator: type, structure: str, max_iter: int) -> str:
    """Return what comes of scikit-learn's fit of a data set."""
    rows = case.rows()
    fit = estimator(
        n_components=case.n_components, covariance_type=structure, max_iter=max_iter, random_state=0
    )
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            fit.fit(rows)
            finite = is_finite(fit, rows)
        except Exception as error:  # noqa: BLE001  (any error at all is an outcome)
            return "refused" if is_validation(error) else "raised"
    if not finite:
        return "not finite"
    bounds = np.asarray(getattr(fit, "lower_bounds_", [fit.lower_bound_]), dtype=np.float64)
    if np.any(np.diff(bounds) < -_ROUNDING * (1 + np.abs(bounds).max())):
        return "fell"
    own = [
        w for w in given if issubclass(w.category, RuntimeWarning) and w.category is not ConvergenceWarning
    ]
    return "warned" if own else "fitted"


def is_validation(error: Exception) -> bool:
    """Whether an error comes from the checks before a fit."""
    trace, places = error.__traceback__, []
    while trace is not None:
        places.append(trace.tb_frame.f_code)
        trace = trace.tb_next
    if not isinstance(error, ValueError | TypeError) or isinstance(error, np.linalg.LinAlgError):
        return False
    started = any(code.co_name in ("_initialize_parameters", "_e_step", "_m_step") for code in places)
    return not started


def is_finite(fit: Any, rows: Any) -> bool:
    """Whether a fit has finite numbers, positive definite covariances and responsibilities that sum to one."""
    numbers = [fit.lower_bound_, fit.weights_, fit.means_, fit.covariances_, fit.score_samples(rows)]
    if not all(np.all(np.isfinite(number)) for number in numbers):
        return False
    return not any(covariance_problems(fit)) and bool(np.allclose(fit.predict_proba(rows).sum(axis=1), 1.0))


def their_fits(case: Case, max_iter: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the outcome of each of scikit-learn's fits of a data set."""
    if case.weigh is not None:
        return
    for estimator in (mixture.BayesianGaussianMixture, mixture.GaussianMixture):
        for structure in STRUCTURES:
            yield f"{estimator.__name__} {structure}", their_outcome(case, estimator, structure, max_iter)


def our_fits(case: Case, max_iter: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the outcome of each of our fits of a data set."""
    for shell in SHELLS:
        outcome = outcome_of(case, shell, max_iter)
        yield shell, "failed" if outcome.problems else outcome.kind


def line(kind: str, sets: int, ours: Counter[str], theirs: Counter[str]) -> str:
    """Return a line of the table."""
    mine = "".join(f"{ours.total() if name == 'fits' else ours[name]:>10}" for name in OURS)
    other = "".join(f"{theirs.total() if name == 'fits' else theirs[name]:>11}" for name in THEIRS)
    return f"{kind:<18}{sets:>5} |{mine} |{other}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--max-iter", type=int, default=100)
    parser.add_argument("--list", action="store_true", help="name the fits that went wrong")
    options = parser.parse_args()
    print(f"{'':<23} | {'caviar':<50}| scikit-learn")
    print(
        f"{'kind':<18}{'sets':>5} |{''.join(f'{n:>10}' for n in OURS)} |{''.join(f'{n:>11}' for n in THEIRS)}"
    )
    all_ours: Counter[str] = Counter()
    all_theirs: Counter[str] = Counter()
    wrong = []
    for kind, cases in KINDS.items():
        ours, theirs = Counter[str](), Counter[str]()
        for case in cases:
            for count, fits in (
                (ours, our_fits(case, options.max_iter)),
                (theirs, their_fits(case, options.max_iter)),
            ):
                for name, outcome in fits:
                    count[outcome] += 1
                    if outcome not in ("fitted", "refused"):
                        wrong.append(f"{case.name}: {name}: {outcome}")
        print(line(kind, len(cases), ours, theirs), flush=True)
        all_ours += ours
        all_theirs += theirs
    print(line("all", sum(map(len, KINDS.values())), all_ours, all_theirs))
    if options.list:
        print("", *wrong, sep="\n")


if __name__ == "__main__":
    main()
