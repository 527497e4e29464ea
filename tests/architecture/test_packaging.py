"""What describes the package in several places says the same in each of them."""

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from caviar import __version__
from caviar._extras import PACKAGES

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = (ROOT / "conda-recipe" / "meta.yaml").read_text(encoding="utf-8")
redirects, sbom = (import_module(name) for name in ("redirects", "sbom"))
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


def test_messages_name_the_packages_of_the_extras():
    extras = PROJECT["optional-dependencies"]

    def packages(extra: str) -> set[str]:
        within = [re.fullmatch(r"caviar\[([\w,]+)\]", own) for own in extras[extra]]
        named = [name for match in within if match for name in match[1].split(",")]
        own = {package for package in extras[extra] if not package.startswith("caviar[")}
        return own.union(*(packages(name) for name in named))

    assert {name: set(own) for name, own in PACKAGES.items()} == {name: packages(name) for name in PACKAGES}


def test_no_message_or_page_installs_caviar_by_its_name_from_an_index():
    """A clone need not be on an index, where the name may be that of another package."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
    sources = ROOT.glob("src/caviar/**/*.py")
    told = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in [*pages, *sources]
        for found in re.finditer(r"""pip install ['"]?caviar\b.*""", path.read_text(encoding="utf-8"))
    ]
    assert told == []


def test_pages_name_the_versions_of_the_extras():
    allowed = {package for own in PACKAGES.values() for package in own}
    pages = {path: path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md")}
    named = [
        package
        for text in pages.values()
        for command in re.findall(r"pip install ([^`\n]*)`", text)
        for package in re.findall(r'"([^"]*>=[^"]*)"', command)
    ]
    assert named
    assert set(named) <= allowed


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_notices_a_copy_of_the_package(tmp_path):
    """Otherwise the targets go on with the copy, whatever the code of the folder has become."""
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / ".venv" / ".installed-cli").touch()

    def steps() -> str:
        command = ["make", "--dry-run", "--directory", str(tmp_path), "demo"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "--editable" not in steps()
    package = tmp_path / ".venv" / "lib" / "python3.12" / "site-packages" / "caviar"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    assert "--editable" in steps()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_the_environment_of_make_has_pip(tmp_path):
    """Where it is activated, ``pip`` must not be that of another Python."""
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("no project, so that nothing is installed")
    command = ["make", "--directory", str(tmp_path), f"PYTHON={sys.executable}", ".venv/.installed-cli"]
    subprocess.run(command, capture_output=True, check=False)
    assert (tmp_path / ".venv" / "bin" / "pip").exists()


def a_wheel(path: Path) -> zipfile.ZipFile:
    """Return a wheel with the files of the source and the metadata of the project."""
    with zipfile.ZipFile(path, "w") as wheel:
        for file in sorted((ROOT / "src" / "caviar").rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                wheel.write(file, file.relative_to(ROOT / "src").as_posix())
        extras = PROJECT["optional-dependencies"]
        needs = [*PROJECT["dependencies"], *(f"{own}; extra == 'plot'" for own in extras["plot"])]
        lines = [
            "Metadata-Version: 2.4",
            "Name: caviar",
            f"Version: {__version__}",
            "License-Expression: BSD-3-Clause",
        ]
        wheel.writestr(
            f"caviar-{__version__}.dist-info/METADATA",
            "\n".join([*lines, *(f"Requires-Dist: {own}" for own in needs)]) + "\n",
        )
    return zipfile.ZipFile(path)


def test_the_bill_of_materials_names_everything_that_is_bundled(tmp_path):
    wheel = a_wheel(tmp_path / "caviar.whl")
    assert sbom.unlisted(wheel.namelist()) == ([], [])
    document = sbom.document_of(wheel)
    named = {part["name"]: part for part in document["components"]}
    assert named["palmerpenguins"]["licenses"] == [{"license": {"id": "CC0-1.0"}}]
    (file,) = named["palmerpenguins"]["components"]
    content = (ROOT / "src" / file["name"]).read_bytes()
    assert file["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]
    assert {stated(own)[0] for own in PROJECT["dependencies"]} <= set(named)
    assert (named["numpy"]["scope"], named["matplotlib"]["scope"]) == ("required", "optional")
    references = [part["bom-ref"] for part in document["components"]]
    assert len(references) == len(set(references))
    assert set(document["dependencies"][0]["dependsOn"]) <= set(references)


def test_a_file_of_others_without_an_entry_is_found(tmp_path):
    names = [*a_wheel(tmp_path / "caviar.whl").namelist(), "caviar/datasets/new.csv"]
    names.remove("caviar/datasets/penguins.csv")
    assert sbom.unlisted(names) == (["caviar/datasets/new.csv"], ["caviar/datasets/penguins.csv"])


def test_licences_of_all_data_are_told_where_the_data_are():
    text = (ROOT / "src" / "caviar" / "datasets" / "LICENCES.md").read_text(encoding="utf-8")
    for entry in sbom.BUNDLED:
        for file in entry.files:
            assert f"`{Path(file).name}`" in text


def test_pages_that_have_moved_lead_to_pages_that_are_there(tmp_path):
    pages = {
        path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
    }
    for old, new in redirects.MOVED.items():
        assert old not in pages
        assert new in pages
        (tmp_path / new).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / new).write_text("here", encoding="utf-8")
    redirects.on_post_build({"site_dir": tmp_path})
    for old in redirects.MOVED:
        link = re.search(r'url=([^"]+)"', (tmp_path / old).read_text(encoding="utf-8"))
        assert link is not None
        assert ((tmp_path / old).parent / link[1]).read_text(encoding="utf-8") == "here"
    with pytest.raises(FileExistsError, match="is a page of the site"):
        redirects.on_post_build({"site_dir": tmp_path})
