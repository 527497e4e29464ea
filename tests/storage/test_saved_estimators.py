"""A loaded estimator does what the saved one did, to the last bit; a made-up file is refused, and runs nothing."""

import json
import zipfile

import numpy as np
import pytest
from thinning import amount

import caviar as cv
from caviar.storage import pack, read, write

from .likeness import same

FAITHFUL = cv.datasets.load_faithful().values
GALAXIES = cv.datasets.load_galaxies().values

CASES = {
    "joint": (cv.BayesianGaussianMixture(3, random_state=0), FAITHFUL),
    "independent": (
        cv.BayesianGaussianMixture(
            2, mean_precision_family="independent", mean_precision_prior=np.eye(2) / 100, random_state=1
        ),
        FAITHFUL,
    ),
    "one column": (cv.BayesianGaussianMixture(4, n_init=3, random_state=np.random.default_rng(3)), GALAXIES),
    "em": (cv.GaussianMixture(2, random_state=0), FAITHFUL),
    "map": (
        cv.GaussianMixture(
            2,
            prior={
                "weight_concentration": [2.0, 3.0],
                "covariance": np.eye(2),
                "mean": [3, 70],
                "mean_precision": 0.1,
            },
            means_init=[[2.0, 55.0], [4.5, 80.0]],
        ),
        FAITHFUL,
    ),
    "known variance": (
        cv.KnownVarianceMixture(3, prior_mean=20.0, weights=[0.2, 0.5, 0.3], random_state=0),
        GALAXIES,
    ),
    **{
        f"{structure}, {form}": (
            cv.BayesianGaussianMixture(
                3, covariance_type=structure, mean_precision_family=form, random_state=0
            ),
            FAITHFUL,
        )
        for structure in ("tied", "diag", "spherical", "unit")
        for form in ("joint", "independent")
    },
    **{
        f"{structure}, em": (cv.GaussianMixture(3, covariance_type=structure, random_state=0), FAITHFUL)
        for structure in ("tied", "diag", "spherical", "unit")
    },
    "process": (
        cv.BayesianGaussianMixture(4, weight_concentration_prior_type="dirichlet_process", random_state=0),
        FAITHFUL,
    ),
    "auto": (cv.BayesianGaussianMixture("auto", random_state=0), FAITHFUL),
    "flat prior": (cv.KnownVarianceMixture(2, prior_variance=np.inf, random_state=0), GALAXIES),
}


@pytest.fixture(params=CASES)
def fitted(request):
    estimator, X = CASES[request.param]
    return estimator.fit(X), X


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(20)
def test_a_loaded_estimator_does_what_the_saved_one_did(fitted, tmp_path):
    estimator, X = fitted
    estimator.save(tmp_path / "m.caviar")
    loaded = cv.load(tmp_path / "m.caviar")
    assert type(loaded) is type(estimator)
    new = X + 0.123
    for method in ("predict", "predict_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(loaded, method)(new), getattr(estimator, method)(new))
    for one, other in zip(
        loaded.sample(50, random_state=7), estimator.sample(50, random_state=7), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    # The draws that would come next come next.
    np.testing.assert_array_equal(loaded.sample(5)[0], estimator.sample(5)[0])


@pytest.mark.thinned(25)
def test_every_attribute_and_parameter_comes_back(fitted, tmp_path):
    estimator, _ = fitted
    estimator.save(tmp_path / "m.caviar")
    loaded = cv.load(tmp_path / "m.caviar")
    attributes = {name for name in vars(estimator) if name.endswith("_")}
    assert {name for name in vars(loaded) if name.endswith("_")} == attributes
    for name in attributes - {"posterior_"}:
        value, saved = getattr(loaded, name), getattr(estimator, name)
        np.testing.assert_array_equal(value, saved, err_msg=name)
        assert np.asarray(value).dtype == np.asarray(saved).dtype, name
    for name, value in estimator.get_params().items():
        if name == "random_state" and not isinstance(value, int):
            assert loaded.random_state is None
        elif name == "prior" and value is not None:
            assert value.keys() == loaded.prior.keys()
        else:
            np.testing.assert_array_equal(getattr(loaded, name), value, err_msg=name)


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(16)
def test_the_posterior_comes_back(fitted, tmp_path):
    estimator, X = fitted
    estimator.save(tmp_path / "m.caviar")
    posterior, saved = cv.load(tmp_path / "m.caviar").posterior_, estimator.posterior_
    assert posterior.keys() == saved.keys()
    assert posterior.elbo == saved.elbo
    assert posterior.elbo_terms == saved.elbo_terms
    assert posterior.status is saved.status
    assert str(posterior) == str(saved)
    rows = {"x": X[:, 0] if isinstance(estimator, cv.KnownVarianceMixture) else X}
    # The statement of the model has come back too, prior included.
    assert posterior.elbo_at({}, rows) == saved.elbo_at({}, rows)
    assert [v.describe() for v in posterior.model.variables.values()] == [
        v.describe() for v in saved.model.variables.values()
    ]
    # What was loaded can be saved and loaded again.
    cv.load(tmp_path / "m.caviar").save(tmp_path / "again.caviar")
    (first, arrays), (second, again) = read(tmp_path / "m.caviar"), read(tmp_path / "again.caviar")
    assert {**first, "saved_at": ""} == {**second, "saved_at": ""}
    assert same(arrays, again)


def test_names_of_columns_and_what_is_told_about_it_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FAITHFUL, columns=["eruptions", "waiting"])
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(frame)
    mixture.save(tmp_path / "m.caviar", about={"source": "Ätna.csv", "columns": ["a", "b"], "rows": 272})
    loaded = cv.load(tmp_path / "m.caviar")
    assert loaded.feature_names_in_.tolist() == ["eruptions", "waiting"]
    np.testing.assert_array_equal(loaded.predict(frame), mixture.predict(frame))
    assert loaded.about_ == {"source": "Ätna.csv", "columns": ["a", "b"], "rows": 272}


def test_what_cannot_be_saved_is_refused_in_words(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        cv.GaussianMixture().save(tmp_path / "m.caviar")

    class Own(cv.GaussianMixture):
        pass

    with pytest.raises(cv.ParameterError, match="is not a class of caviar"):
        Own(random_state=0).fit(FAITHFUL).save(tmp_path / "m.caviar")
    mixture = cv.GaussianMixture(random_state=0).fit(FAITHFUL)
    with pytest.raises(cv.ParameterError, match="'about/when' is of type"):
        mixture.save(tmp_path / "m.caviar", about={"when": object()})
    with pytest.raises(cv.DataError, match="there is no folder"):
        mixture.save(tmp_path / "nowhere" / "m.caviar")
    assert list(tmp_path.iterdir()) == []
    quiet = cv.GaussianMixture(random_state=0, verbose=lambda event: None).fit(FAITHFUL)
    quiet.save(tmp_path / "m.caviar")
    assert cv.load(tmp_path / "m.caviar").verbose is False


@pytest.fixture
def saved(tmp_path):
    cv.BayesianGaussianMixture(2, random_state=0).fit(FAITHFUL).save(tmp_path / "m.caviar")
    return tmp_path / "m.caviar"


def test_damaged_files_are_refused_or_load_as_they_were(saved):
    content, rng = saved.read_bytes(), np.random.default_rng(0)
    expected = cv.load(saved).score_samples(FAITHFUL)
    refused = 0
    n_files = amount(150, 600)
    for number in range(n_files):
        at, damaged = int(rng.integers(len(content))), bytearray(content)
        if number % 3 == 0:
            del damaged[at:]
        elif number % 3 == 1:
            damaged[at] ^= 1 << int(rng.integers(8))
        else:
            damaged[at : at + 8] = rng.bytes(8)
        saved.write_bytes(damaged)
        try:
            loaded = cv.load(saved)
        except cv.DataError:
            refused += 1
        else:
            np.testing.assert_array_equal(loaded.score_samples(FAITHFUL), expected)
    assert refused > 2 / 3 * n_files


def places(value, path=()):
    """Yield the path of everything inside nested lists and dictionaries."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


REPLACEMENTS = [
    None,
    -1,
    10**30,
    0.5,
    "os.system",
    [],
    {},
    {"$array": "nope"},
    {"$names": ["x"]},
    {"$x": 1},
    [[]],
    True,
]


@pytest.mark.slow
def test_made_up_documents_are_refused_or_harmless(saved):
    """Replace each entry by values that make no sense there: the file loads or is refused, and nothing else."""
    header, arrays = read(saved)
    text, rng = json.dumps(header), np.random.default_rng(0)
    refused = tried = 0
    for path in places(header):
        for replacement in rng.choice(len(REPLACEMENTS), 3, replace=False):
            document = json.loads(text)
            inner = document
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = REPLACEMENTS[replacement]
            if (
                document["format"] != "caviar"
                or document["format_version"] != 2
                or document["arrays"] != list(arrays)
            ):
                continue
            write(saved, {**document, "arrays": list(arrays)}, arrays)
            tried += 1
            try:
                cv.load(saved)
            except cv.DataError:
                refused += 1
    assert refused > 0.5 * tried > 50


def test_no_name_in_a_file_is_looked_up_anywhere_but_in_a_table(saved):
    header, arrays = read(saved)
    for change in (
        {"class": "os.system"},
        {"class": "BaseEstimator"},
        {"attributes": {"__class__": 1}},
        {"attributes": {"fit": 1}},
        {"parameters": {"posterior_": 1}},
    ):
        write(saved, {**header, **change}, arrays)
        with pytest.raises(cv.DataError, match="damaged, or not made by caviar"):
            cv.load(saved)


def test_a_file_without_an_estimator_is_refused(tmp_path):
    write(tmp_path / "m.caviar", *pack({"x": np.arange(3)}))
    with pytest.raises(cv.DataError, match="class"):
        cv.load(tmp_path / "m.caviar")


def test_the_file_is_arrays_and_json(saved):
    with zipfile.ZipFile(saved) as archive:
        assert {name.rsplit(".")[-1] for name in archive.namelist()} == {"json", "npy"}
        assert json.loads(archive.read("header.json"))["class"] == "BayesianGaussianMixture"
    # 8 kB of it are marks of rows, which are as many at most
    # and 160 kB the draws that predict
    assert saved.stat().st_size < 200_000


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(2)
@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical", "unit"])
def test_a_fit_to_rows_with_errors_is_saved(structure, tmp_path):
    errors = np.full(FAITHFUL.shape, 0.01)
    mixture = cv.BayesianGaussianMixture(2, covariance_type=structure, random_state=0)
    mixture.fit(FAITHFUL, noise_covariance=errors).save(tmp_path / "measured.caviar")
    again = cv.load(tmp_path / "measured.caviar")
    np.testing.assert_array_equal(
        again.predict_proba(FAITHFUL, errors), mixture.predict_proba(FAITHFUL, errors)
    )


@pytest.mark.slow
def test_moves_are_saved(tmp_path):
    mixture = cv.BayesianGaussianMixture("auto", random_state=0).fit(FAITHFUL)
    mixture.save(tmp_path / "auto.caviar")
    assert cv.load(tmp_path / "auto.caviar").moves_ == mixture.moves_
