"""Every public name exists, stands in its list once and in order, and is loaded only when it is asked for."""

import importlib
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import caviar

SOURCE = Path(caviar.__path__[0])
MODULES = sorted(
    ".".join(("caviar", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if path.name != "__main__.py"
)


def by_kind(name: str) -> tuple[int, str]:
    """Sort constants first, then classes, then the rest: the order that ruff keeps (RUF022)."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2), name


@pytest.mark.parametrize("name", MODULES)
def test_public_names_exist_once_and_in_order(name):
    module = importlib.import_module(name)
    public = getattr(module, "__all__", [])
    assert [n for n in public if not hasattr(module, n)] == []
    assert list(public) == sorted(set(public), key=by_kind)


def test_public_names_are_loaded_when_first_used():
    program = """
import json, caviar
before = sorted(set(caviar.__all__) & set(vars(caviar)) - {"__version__"})
unlisted = sorted(set(caviar.__all__) - set(dir(caviar)))
unresolved = [name for name in caviar.__all__ if getattr(caviar, name, None) is None]
print(json.dumps([before, unlisted, unresolved]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, unlisted, unresolved = json.loads(done.stdout)
    assert before == [], "loaded by `import caviar` already"
    assert unlisted == [], "missing from dir(caviar)"
    assert unresolved == []


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="GausianMixture"):
        getattr(caviar, "GausianMixture")  # noqa: B009


def test_the_version_is_that_of_the_installed_package():
    assert getattr(caviar, "__version__") == version("caviar")  # noqa: B009
