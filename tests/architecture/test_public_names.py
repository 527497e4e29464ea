"""Every public name exists, stands in its list once and in order, and is loaded only when it is asked for."""

import importlib
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import caviar

PUBLIC: Any = caviar
SOURCE = Path(caviar.__path__[0])
MODULES = sorted(
    ".".join(("caviar", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if path.name != "__main__.py"
)


def by_kind(name: str) -> tuple[int, str]:
    """Sort constants first, then classes, then the rest: the order that ruff keeps (RUF022)."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2), name


def test_public_names_exist_once_and_in_order():
    public = {name: getattr(importlib.import_module(name), "__all__", []) for name in MODULES}
    absent = {name: [n for n in own if not hasattr(sys.modules[name], n)] for name, own in public.items()}
    assert {name: own for name, own in absent.items() if own} == {}
    assert {name: list(own) for name, own in public.items()} == {
        name: sorted(set(own), key=by_kind) for name, own in public.items()
    }


def test_public_names_are_loaded_when_first_used():
    before, unlisted, first = in_a_fresh_process("""
import json, caviar
before = sorted(set(caviar.__all__) & set(vars(caviar)) - {"__version__"})
unlisted = sorted(set(caviar.__all__) - set(dir(caviar)))
print(json.dumps([before, unlisted, caviar.Plate.__name__]))
""")
    assert before == [], "loaded by `import caviar` already"
    assert unlisted == [], "missing from dir(caviar)"
    assert first == "Plate"
    assert [name for name in PUBLIC.__all__ if getattr(caviar, name, None) is None] == []


@pytest.mark.slow
def test_every_public_name_is_there_when_nothing_was_loaded_before():
    program = """
import json, caviar
print(json.dumps([name for name in caviar.__all__ if getattr(caviar, name, None) is None]))
"""
    assert in_a_fresh_process(program) == []


def in_a_fresh_process(program: str) -> Any:
    """Return what a Python program prints as JSON that starts with nothing imported."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="GausianMixture"):
        getattr(caviar, "GausianMixture")  # noqa: B009


def test_the_version_is_that_of_the_installed_package():
    assert getattr(caviar, "__version__") == version("caviar")  # noqa: B009


def test_a_renamed_name_works_and_warns_at_the_line_that_uses_it(monkeypatch):
    monkeypatch.setitem(PUBLIC._RENAMED, "Gaussian", ("Normal", "0.9"))
    with pytest.warns(caviar.RenamedWarning, match=r"caviar\.Gaussian is now caviar\.Normal") as caught:
        found = PUBLIC.Gaussian
    assert found is caviar.Normal
    assert caught[0].filename == __file__
    assert "gone in version 0.9" in str(caught[0].message)
    # shown by default, and an error of ours where warnings are errors
    assert issubclass(caviar.RenamedWarning, FutureWarning)
    assert "Gaussian" not in dir(caviar)


def test_old_names_lead_to_public_ones_and_are_none_themselves():
    for name, (new, last) in PUBLIC._RENAMED.items():
        assert name not in PUBLIC.__all__
        assert new in PUBLIC.__all__
        assert tuple(map(int, last.split("."))) > tuple(map(int, caviar.__version__.split(".")[:2]))
