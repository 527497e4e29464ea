"""A checkpoint is gone on from by the same call only: another model, other data, other arguments are told apart."""

import logging

import numpy as np
import pytest

import caviar as cv
from caviar import CheckpointError
from checkpoint.comparing import Broken, after, assert_same_bits

pytestmark = pytest.mark.first_guess

X = np.random.default_rng(0).normal(size=(300, 2))
MANY = np.random.default_rng(1).normal(size=(20_000, 2))
KNOWN = {"seed": 0, "max_iter": 9, "tol": 0.0}


def model(n_components: int = 2, mean_precision: float = 0.1) -> cv.Model:
    return cv.models.normal_wishart_mixture(2, n_components, mean_precision=mean_precision)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("broken") / "run.ckpt"
    broken_off(path, X)
    return path.read_bytes()


@pytest.fixture
def path(content, tmp_path):
    path = tmp_path / "run.ckpt"
    path.write_bytes(content)
    return path


def broken_off(path, X, **arguments):
    with pytest.raises(Broken):
        model().fit({"x": X}, **KNOWN, **arguments, checkpoint=path, checkpoint_every=0, progress=after(3))


def refusal(path, *, stated=None, x=X, **arguments):
    with pytest.raises(CheckpointError) as caught:
        (stated or model()).fit({"x": x}, **{**KNOWN, **arguments}, checkpoint=path)
    assert "checkpoint of another fit" in str(caught.value)
    assert "repeat its call" in str(caught.value)
    return str(caught.value)


def reversed_statement() -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    theta = cv.NormalWishart("theta", np.zeros(2), 0.1, 2.0, np.eye(2), plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    return cv.Model(cv.MultivariateNormal("x", theta[z], plates=obs))


@pytest.mark.parametrize(
    "stated", [model(3), model(mean_precision=0.2), reversed_statement(), cv.models.factor_analysis(2, 1)]
)
def test_another_model(stated, path):
    assert "its model differs" in refusal(path, stated=stated)


def one_number_changed(X):
    changed = X.copy()
    changed[len(X) // 3, 1] = np.nextafter(changed[len(X) // 3, 1], 9)
    return changed


@pytest.mark.parametrize(
    "x", [X[:-1], X[::-1], one_number_changed(X), X.astype(np.float32), np.where(X > 2, np.nan, X)]
)
def test_other_data(x, path):
    message = refusal(path, x=x)
    assert "its data differ" in message
    assert "model" not in message


def test_other_data_in_many_rows(tmp_path):
    broken_off(tmp_path / "c", MANY)
    for x in (MANY[::-1], MANY[:-1], np.vstack([MANY[1:], MANY[:1]]), MANY + 1e-9):
        assert "its data differ" in refusal(tmp_path / "c", x=x)
    outlier = MANY.copy()
    outlier[777, 0] = 40.0
    assert "its data differ" in refusal(tmp_path / "c", x=outlier)


def test_other_weights_and_known_values(path):
    assert "its data differ" in refusal(path, sample_weight=np.full(300, 2.0))
    stated = model()
    known = {"x": X, "weights": [0.5, 0.5]}
    with pytest.raises(CheckpointError, match="its data differ"):
        stated.fit(known, **KNOWN, checkpoint=path)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"tol": 1e-6}, "it had tol=0.0, and this call has tol=1e-06"),
        ({"max_iter": 10}, "it had max_iter=9, and this call has max_iter=10"),
        ({"n_restarts": 2}, "it had n_restarts=1"),
        ({"seed": 1}, "it had seed=0, and this call has seed=1"),
        ({"seed": None}, "it had seed=0"),
        ({"seed": np.random.default_rng(0)}, "its seed differs"),
        ({"point": ["weights"]}, r"it had point=[]"),
        ({"order": ["theta"]}, "it had order=None"),
        ({"accelerate": False}, "it had accelerate=True"),
        ({"schedule": "incremental"}, "it had schedule='Auto()'"),
        ({"init": "prior"}, "its init differs"),
        ({"init": {"z": np.zeros(300, int)}}, "its init differs"),
    ],
)
def test_other_arguments(arguments, told, path):
    assert told in refusal(path, **arguments)


def test_arguments_that_change_no_bits_may_change(path):
    plain = model().fit({"x": X}, **KNOWN)
    assert_same_bits(model().fit({"x": X}, **KNOWN, checkpoint=path, executor=2, checkpoint_every=5), plain)


def test_generators_are_told_apart_by_what_they_spawn_next(tmp_path):
    def fit(seed, **arguments):
        known = {"max_iter": 5, "tol": 0.0, "checkpoint": tmp_path / "c", "checkpoint_every": 0}
        return model().fit({"x": X}, seed=seed, **known, **arguments)

    with pytest.raises(Broken):
        fit(np.random.default_rng(4), progress=after(3))
    used = np.random.default_rng(4)
    used.spawn(1)
    for other in (used, np.random.default_rng(5), 4):
        with pytest.raises(CheckpointError, match="its seed differs"):
            fit(other)
    found = fit(np.random.default_rng(4))
    assert_same_bits(found, model().fit({"x": X}, seed=np.random.default_rng(4), max_iter=5, tol=0.0))


def test_where_a_fit_goes_on_is_logged(path, caplog):
    with caplog.at_level(logging.INFO, logger="caviar.checkpoint"):
        model().fit({"x": X}, **KNOWN, checkpoint=path)
        model().fit({"x": X}, **KNOWN, checkpoint=path)
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: goes on from start 1/1, iteration 3",
        f"{path}: this fit has ended; its result is taken from there",
    ]
