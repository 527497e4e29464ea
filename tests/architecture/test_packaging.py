"""What describes the package in several places says the same in each of them."""

import re
import tomllib
from pathlib import Path

import pytest

from caviar import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = (ROOT / "conda-recipe" / "meta.yaml").read_text(encoding="utf-8")
CONDA_NAMES = {"duckdb": "python-duckdb", "matplotlib": "matplotlib-base", "dask": "dask-core"}


def requirements(section: str) -> dict[str, str]:
    """Return the requirements in a section of the recipe: name -> version."""
    lines = RECIPE.split(f"  {section}:\n")[1].splitlines()
    found = {}
    for line in lines:
        entry = re.fullmatch(r"    - ([\w-]+) ?(\S*)", line)
        if entry is None:
            break
        found[entry[1]] = entry[2]
    return found


def stated(requirement: str) -> tuple[str, str]:
    name, version = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?(.*)", requirement).groups()  # type: ignore[union-attr]
    return CONDA_NAMES.get(name, name), version


def test_the_recipe_needs_what_the_package_needs():
    expected = dict(stated(requirement) for requirement in PROJECT["dependencies"])
    assert requirements("run") == {"python": PROJECT["requires-python"], **expected}
    assert f'version = "{__version__}"' in RECIPE


@pytest.mark.parametrize("extra", ["arviz", "cli", "dask", "plot", "tables"])
def test_the_recipe_constrains_the_extras(extra):
    wanted = dict(
        stated(own) for own in PROJECT["optional-dependencies"][extra] if not own.startswith("caviar")
    )
    constrained = requirements("run_constrained")
    assert {name: constrained.get(name) for name in wanted} == wanted


def test_extras_stand_in_order_before_those_of_developers():
    of_users = [
        name for name in PROJECT["optional-dependencies"] if name not in {"test", "docs", "bench", "dev"}
    ]
    assert of_users == sorted(of_users)


def test_the_citation_has_what_its_format_demands():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    keys = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", text, re.MULTILINE))
    assert {"cff-version", "message", "title", "authors"} <= keys.keys()
    assert keys["cff-version"] == "1.2.0"
    assert keys["type"] == "software"
    assert keys["version"] == __version__
    assert keys["license"] == PROJECT["license"]


def test_the_changelog_has_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\]", text, re.MULTILINE)


def test_every_python_that_is_promised_is_tried():
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert promised
    assert all(f'"{version}"' in workflow for version in promised)
    assert all(f"{system}-latest" in workflow for system in ("ubuntu", "macos", "windows"))
