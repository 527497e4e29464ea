"""Files that earlier versions wrote are loaded, and give the numbers that they gave then; of later ones it is told."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import caviar as cv
from caviar.storage.document import FORMAT_VERSION

STORED = Path(__file__).parent / "stored"
FILES = sorted(STORED.glob("format-*/*.caviar"))


def test_there_are_files_of_every_format_version():
    folders = {path.parent.name for path in FILES}
    assert folders == {f"format-{version}" for version in range(1, FORMAT_VERSION + 1)}
    for path in FILES:
        with zipfile.ZipFile(path) as archive:
            version = json.loads(archive.read("header.json"))["format_version"]
        assert path.parent.name == f"format-{version}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_stored_file_gives_the_numbers_beside_it(path, tmp_path):
    wanted = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    found = cv.load(path)
    assert_gives(found, wanted)
    # and can be saved anew, in the present format
    found.save(tmp_path / "again.caviar")
    assert_gives(cv.load(tmp_path / "again.caviar"), wanted)


def assert_gives(found, wanted):
    assert type(found).__name__ == wanted["class"]
    if isinstance(found, cv.Model):
        # labels to begin with: where a fit begins by itself may change from version to version
        fitted = found.fit(wanted["data"], init={"z": wanted["labels"]}, seed=0)
        assert fitted.elbo == pytest.approx(wanted["elbo"], rel=1e-9)
        return
    if isinstance(found, cv.Posterior):
        data = wanted["data"]
        assert found.elbo == wanted["elbo"]
        assert found.elbo_at({}, data) == pytest.approx(wanted["elbo_at"], rel=1e-9)
        if wanted["updated"] is not None:
            assert found.update(data, max_iter=1, seed=0).elbo == pytest.approx(wanted["updated"], rel=1e-9)
        # in the same order; what a place is called may change from version to version
        means = [row.mean for row in found.summary(max_rows=None).rows]
        assert means == pytest.approx(list(wanted["means"].values()), rel=1e-9)
        return
    assert found.elbo_ == wanted["elbo"]
    rows = np.array(wanted["rows"])
    for method in ("score_samples", "predict_proba"):
        np.testing.assert_allclose(getattr(found, method)(rows), wanted[method], rtol=1e-9, atol=1e-12)


def test_a_file_of_a_later_format_is_refused_with_both_versions(tmp_path):
    header = {
        "format": "caviar",
        "format_version": FORMAT_VERSION + 1,
        "caviar_version": "9.1",
        "what": "else",
    }
    with zipfile.ZipFile(tmp_path / "later.caviar", "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        # whatever a later format may hold
        archive.writestr("other/thing.bin", b"x" * 100, zipfile.ZIP_DEFLATED)
    with pytest.raises(cv.DataError) as caught:
        cv.load(tmp_path / "later.caviar")
    for part in ("caviar 9.1", f"format {FORMAT_VERSION + 1}", f"up to {FORMAT_VERSION}", cv.__version__):
        assert part in str(caught.value)
