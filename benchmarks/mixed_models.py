"""Mixed models beside lme4 and statsmodels: estimates, and seconds.

    OMP_NUM_THREADS=1 python benchmarks/mixed_models.py --data DIR [--peers]

``DIR/glmm`` has the tables sleepstudy, VerbAgg and InstEval of the R package lme4. lme4's figures (1.1-31, by maximum
likelihood; binary outcomes by Laplace's approximation) and its seconds were recorded on another core, so compare the
order of magnitude. With ``--peers`` statsmodels, if it is installed, fits what it can: ``MixedLM`` one grouping factor,
``BinomialBayesMixedGLM`` crossed ones. Standard deviations are posterior means here, and maxima there.

"log-likelihood" is that of the parameters with group effects integrated out (``mixed_likelihood.py``), at the posterior
means of caviar and at lme4's estimates. The latter has to be the one that lme4 recorded, which is its maximum.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mixed_likelihood import effects_of, log_likelihood

import caviar as cv


@dataclass(frozen=True)
class Case:
    """A table, a formula, and what lme4 made of it.

    Attributes
    ----------
    table, formula, family
        Of the fit.
    estimates
        Name of a common effect -> estimate and standard error.
    spreads
        Name of a standard deviation, or correlation -> estimate.
    groups
        Name of a grouping factor -> the columns whose effects vary by group.
    maximum
        Of the log-likelihood, as lme4 recorded it.
    seconds
        That lme4 took; None if they were not recorded.
    """

    table: str
    formula: str
    family: str
    estimates: dict[str, tuple[float, float]]
    spreads: dict[str, float]
    groups: dict[str, tuple[str, ...]]
    maximum: float
    seconds: float | None = None


CASES = (
    Case(
        "sleepstudy",
        "Reaction ~ Days + (Days | Subject)",
        "gaussian",
        {"Intercept": (251.405105, 6.632123), "Days": (10.467286, 1.502230)},
        {
            "Subject, Intercept": 23.779760,
            "Subject, Days": 5.716799,
            "Subject, Intercept and Days": 0.081321,
            "residual standard deviation": 25.591907,
        },
        {"Subject": ("Intercept", "Days")},
        -875.969672,
    ),
    Case(
        "verbagg",
        "r2 ~ Anger + Gender + btype + situ + (1 | id) + (1 | item)",
        "bernoulli",
        {
            "Intercept": (0.199257, 0.405722),
            "Anger": (0.057410, 0.016793),
            "Gender[T.M]": (0.320610, 0.191576),
            "btype[T.scold]": (-1.058636, 0.257067),
            "btype[T.shout]": (-2.105060, 0.259034),
            "situ[T.self]": (-1.055284, 0.210531),
        },
        {"id, Intercept": 1.339539, "item, Intercept": 0.495243},
        {"id": ("Intercept",), "item": ("Intercept",)},
        -4075.700245,
        2.3,
    ),
    Case(
        "insteval",
        "y ~ service + (1 | s) + (1 | d) + (1 | dept)",
        "gaussian",
        {"Intercept": (3.282581, 0.028408), "service": (-0.092589, 0.013383)},
        {
            "s, Intercept": 0.325528,
            "d, Intercept": 0.514983,
            "dept, Intercept": 0.078519,
            "residual standard deviation": 1.177493,
        },
        {"s": ("Intercept",), "d": ("Intercept",), "dept": ("Intercept",)},
        -118860.884388,
        4.7,
    ),
    Case(
        "insteval",
        "good ~ service + (1 | s) + (1 | d) + (1 | dept)",
        "bernoulli",
        {"Intercept": (-0.159716, 0.043375), "service": (-0.139858, 0.024150)},
        {"s, Intercept": 0.476714, "d, Intercept": 0.787827, "dept, Intercept": 0.116211},
        {"s": ("Intercept",), "d": ("Intercept",), "dept": ("Intercept",)},
        -46410.885126,
        34.1,
    ),
)


def table_of(folder: Path, name: str) -> pd.DataFrame:
    """Return a table of lme4."""
    table = pd.read_csv(folder / "glmm" / f"{name}.csv.gz")
    if name == "verbagg":
        table["r2"] = (table["r2"] == "Y").astype(int)
    if name == "insteval":
        table["good"] = (table["y"] >= 4).astype(int)
    return table


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the seconds of processor that it took."""
    start = time.process_time()
    return fit(), time.process_time() - start


def log_likelihood_at(
    case: Case, table: pd.DataFrame, common: Mapping[str, float], spreads: Mapping[str, float]
) -> float:
    """Return the log-likelihood of a case at its common effects, and standard deviations and correlations."""
    columns = {name: column_of(table, name) for name in common}
    fixed = sum((value * columns[name] for name, value in common.items()), np.zeros(len(table)))
    effects, covariances = [], []
    for group, varying in case.groups.items():
        effects.append(
            effects_of(table[group].to_numpy(), np.column_stack([columns[own] for own in varying]))
        )
        sds = np.array([spreads[f"{group}, {own}"] for own in varying])
        correlation = spreads.get(f"{group}, {' and '.join(varying)}", 0.0)
        covariances.append(np.outer(sds, sds) * (np.eye(len(sds)) * (1.0 - correlation) + correlation))
    y = table[case.formula.partition(" ")[0]].to_numpy(dtype=float)
    return log_likelihood(y, fixed, effects, covariances, spreads.get("residual standard deviation"))


def column_of(table: pd.DataFrame, name: str) -> np.ndarray:
    """Return a column of the common effects: 1, a column of the table, or one for a level of it."""
    variable, _, level = name.partition("[T.")
    if name == "Intercept":
        return np.ones(len(table))
    return (
        (table[variable] == level.rstrip("]")).to_numpy(float) if level else table[variable].to_numpy(float)
    )


def of_case(case: Case, table: pd.DataFrame) -> None:
    """Print a fit beside lme4's."""
    model = cv.MixedModel(case.formula, family=case.family, random_state=0)
    fitted, seconds = timed(lambda: model.fit(table))
    recorded = "not recorded" if case.seconds is None else f"{case.seconds:.1f} s"
    print(f"\n{case.table}: {case.formula}, {case.family}; {len(table):,} rows")
    print(f"  {seconds:.1f} s, {fitted.n_iter_} iterations, ELBO {fitted.elbo_:.2f}; lme4 {recorded}")
    told = fitted.summary().to_frame().set_index("name")
    for name, (estimate, error) in case.estimates.items():
        apart = abs(told["mean"][name] - estimate) / error
        print(
            f"  {name:<30}{told['mean'][name]:>10.4f} ({told['sd'][name]:.4f})   lme4 {estimate:>10.4f} ({error:.4f})"
            f"   {apart:.3f} standard errors apart"
        )
    for name, estimate in case.spreads.items():
        print(f"  {name:<30}{told['mean'][name]:>10.4f} ({told['sd'][name]:.4f})   lme4 {estimate:>10.4f}")
    common, spreads = ({name: told["mean"][name] for name in own} for own in (case.estimates, case.spreads))
    here = log_likelihood_at(case, table, common, spreads)
    theirs = {name: estimate for name, (estimate, _) in case.estimates.items()}
    there = log_likelihood_at(case, table, theirs, case.spreads)
    print(f"  log-likelihood {here:.3f}, at lme4's estimates {there:.3f}; lme4 recorded {case.maximum:.3f}")


def of_peers(tables: dict[str, pd.DataFrame]) -> None:
    """Print what statsmodels makes of the tables that it can fit, if it is installed."""
    try:
        import statsmodels.formula.api as smf
        from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM
    except ImportError:
        print("\nstatsmodels is not installed")
        return
    sleep = tables["sleepstudy"]
    stated = smf.mixedlm("Reaction ~ Days", sleep, groups=sleep["Subject"], re_formula="~Days")
    found, seconds = timed(lambda: stated.fit(reml=False))
    print(f"\nstatsmodels MixedLM, sleepstudy: {seconds:.2f} s; {np.round(found.fe_params.to_numpy(), 4)}")
    formula = "r2 ~ Anger + Gender + btype + situ"
    groups = {"id": "0 + C(id)", "item": "0 + C(item)"}
    glm, building = timed(lambda: BinomialBayesMixedGLM.from_formula(formula, groups, tables["verbagg"]))
    found, seconds = timed(glm.fit_vb)
    print(
        f"statsmodels BinomialBayesMixedGLM (variational), VerbAgg: {building + seconds:.1f} s; "
        f"{np.round(found.fe_mean, 4)}"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Fit mixed models beside lme4 and statsmodels.")
    parser.add_argument("--data", type=Path, required=True, help="folder with glmm/*.csv.gz")
    parser.add_argument("--peers", action="store_true", help="fit with statsmodels, too")
    asked = parser.parse_args()
    tables = {case.table: table_of(asked.data, case.table) for case in CASES}
    for case in CASES:
        of_case(case, tables[case.table])
    if asked.peers:
        of_peers(tables)


if __name__ == "__main__":
    main()
