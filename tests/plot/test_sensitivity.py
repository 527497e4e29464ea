"""The picture of sensitivities says what the table does."""

import numpy as np
import pytest

import caviar as cv


@pytest.fixture(scope="module")
def response():
    tau = cv.Gamma("tau", 2, 2)
    x = cv.Normal("x", cv.Normal("m", 0, 1), tau, plates=cv.Plate("obs"))
    data = {"x": [1.0, -0.5, 2.0, 0.3]}
    return cv.Model(x).fit(data, tol=1e-12).linear_response(data)


def test_a_cell_for_each_number_of_a_prior_and_each_variable(response):
    table = response.sensitivity_table()
    ax = cv.plot.sensitivity(response)
    (image,) = ax.images
    expected = [[row.shifts[name] for name in table.names] for row in table.rows]
    np.testing.assert_allclose(image.get_array(), expected)
    assert [label.get_text() for label in ax.get_xticklabels()] == list(table.names)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == [f"{row.prior} +{row.change}" for row in table.rows]
    # the sign is readable in grey
    assert {text.get_text()[0] for text in ax.texts} == {"+", "\N{MINUS SIGN}"}


def test_some_variables_and_some_rows(response):
    ax = cv.plot.sensitivity(response.sensitivity_table(), "tau", max_rows=2)
    assert ax.images[0].get_array().shape == (2, 1)


def test_anything_else_is_refused(response):
    with pytest.raises(cv.ParameterError, match=r"linear_response\(data\)"):
        cv.plot.sensitivity({})
    with pytest.raises(cv.ParameterError, match="no variable 'z'"):
        cv.plot.sensitivity(response.sensitivity_table(), "z")
