"""Summaries and plots of estimators call parameters as the attributes do; names of the stated model go on working."""

import matplotlib as mpl
import numpy as np
import pytest

import caviar as cv

pytestmark = pytest.mark.first_guess

mpl.use("Agg")

FAITHFUL = cv.datasets.load_faithful()
PENGUINS = cv.datasets.load_penguins()


@pytest.fixture(scope="module")
def mixture():
    return cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL)


def shown(estimator):
    return list(dict.fromkeys(row.variable for row in estimator.summary().rows))


@pytest.mark.usefixtures("figures_of_factors")
def test_a_summary_has_the_names_of_the_attributes(mixture):
    names = shown(mixture)
    assert names == ["means", "precisions", "mean_precision_prior", "covariance_prior", "weights"]
    assert all(hasattr(mixture, f"{name}_") for name in names)
    rows = {(row.variable, row.index): row.mean for row in mixture.summary(max_rows=None).rows}
    at = {"eruptions, component 0": mixture.means_[0, 0], "waiting, component 1": mixture.means_[1, 1]}
    for index, value in at.items():
        # the table is to second order, and the attribute is the expectation under q
        assert rows["means", index] == pytest.approx(value, rel=1e-2)
    # what is left out is counted by the same names
    assert set(mixture.summary(max_rows=1).left_out) == {"means", "precisions", "covariance_prior", "weights"}
    assert "theta" not in str(mixture.summary())


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.parametrize(
    ("estimator", "rows"),
    [
        (cv.GaussianMixture(2, random_state=0), FAITHFUL.values),
        (cv.KnownVarianceMixture(3, random_state=0), cv.datasets.load_galaxies().values),
        (cv.BayesianGaussianMixture(2, covariance_type="tied", random_state=0), FAITHFUL.values),
        (cv.HiddenMarkovModel(2, random_state=0), FAITHFUL.values),
        (cv.HiddenMarkovModel(2, emission="poisson", random_state=0), np.arange(20)[:, None] // 7),
        (
            cv.HiddenMarkovModel(2, emission="categorical", random_state=0),
            np.array(list("aabbabbbab"))[:, None],
        ),
    ],
    ids=["em", "known", "tied", "hmm", "poisson", "categorical"],
)
def test_so_has_every_other_one(estimator, rows):
    fitted = estimator.fit(rows)
    names = shown(fitted)
    assert names
    # the names of the prior are those of arguments where there is no attribute
    assert [name for name in names if not hasattr(fitted, f"{name}_") and not name.endswith("_prior")] == []


def test_columns_of_a_mixed_table_are_told_by_name():
    mixed = cv.MixedMixture(2, random_state=0).fit(PENGUINS)
    names = shown(mixed)
    assert {"bill_length_mm mean", "bill_length_mm precision", "species probabilities", "weights"} <= set(
        names
    )
    assert cv.plot.forest(mixed, "bill_length_mm mean").get_xlabel() == "bill_length_mm mean"


def test_plots_take_both_names(mixture):
    for name in ("means", "theta.mean"):
        panels = cv.plot.forest(mixture, [name, "weights"])
        assert [ax.get_xlabel() for ax in panels] == ["means, eruptions", "means, waiting", "weights"]
    one = cv.plot.forest(mixture, "means", only={"means": ["waiting"]})
    assert [label.get_text() for label in one.get_yticklabels()] == [
        "waiting, component 0",
        "waiting, component 1",
    ]
    assert one.get_title().startswith("means: mean and 95% interval")
    told = cv.plot.prior_posterior(mixture, "mean_precision_prior")
    assert told[0].get_xlabel() == "mean_precision_prior"
    with pytest.raises(
        cv.ParameterError, match="no parameters 'sigma'; it has 'means', 'precisions', 'mean_prec"
    ):
        cv.plot.forest(mixture, "sigma")
    with pytest.raises(cv.ParameterError, match="choose 'means' or 'precisions'"):
        cv.plot.forest(mixture, "theta")
    # a posterior has the names of its statement
    assert cv.plot.forest(mixture.posterior_, "weights").get_xlabel() == "weights"
    with pytest.raises(cv.ParameterError, match="no global variable 'means'"):
        cv.plot.forest(mixture.posterior_, "means")
