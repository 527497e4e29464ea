"""Write the bill of materials of a wheel, in CycloneDX: what it bundles, under which licences, and what it needs.

    python packaging/sbom.py dist/caviar-0.1.0-py3-none-any.whl > dist/caviar-0.1.0.cdx.json

Every file of the wheel that is not the project's own code belongs to an entry of BUNDLED; a file that no entry names,
and an entry without a file, end the script with status 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import PurePosixPath
from typing import Any

__all__ = ["BUNDLED", "Bundled", "document_of", "unlisted"]

LICENCE = "BSD-3-Clause"
OWN = re.compile(
    r"caviar/(?:.*\.pyi?|py\.typed|plot/caviar\.mplstyle|datasets/LICENCES\.md|report/html/(?:parts|templates)/[\w-]+\.\w+)"
    r"|[\w.-]+\.dist-info/.*"
)
"""The project's own files."""

OF_DEVELOPERS = ("bench", "dev", "docs", "test")
"""Extras that no user installs."""


@dataclass(frozen=True)
class Bundled:
    """Something of others that the wheel holds.

    Attributes
    ----------
    name, source
        What it is, and where it comes from.
    licence
        Identifier of SPDX, or a name; ``datasets/LICENCES.md`` has the texts.
    files
        Its files in the wheel.
    """

    name: str
    source: str
    licence: str
    files: tuple[str, ...]


def _data(name: str, source: str, licence: str, *files: str) -> Bundled:
    return Bundled(name, source, licence, tuple(f"caviar/datasets/{file}" for file in files))


BUNDLED = (
    _data("Old Faithful", "Azzalini and Bowman (1990)", "published figures", "faithful.csv"),
    _data("galaxies", "Roeder (1990)", "published figures", "galaxies.csv"),
    _data("sleepstudy", "Belenky et al. (2003)", "published figures", "sleepstudy.csv"),
    _data("palmerpenguins", "Horst, Hill and Gorman (2020)", "CC0-1.0", "penguins.csv"),
    _data("CMU motion capture", "mocap.cs.cmu.edu, by bnpy", "BSD-3-Clause", "motion_capture.csv.gz"),
    _data(
        "CMU 2008 Political Blog Corpus",
        "Eisenstein and Xing (2010), by stm",
        "MIT",
        "political_blogs.ldac.gz",
        "political_blogs.vocab.txt.gz",
    ),
)


def unlisted(files: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the files of a wheel that no entry names, and those of entries that are not there."""
    there = set(files)
    named = {file for own in BUNDLED for file in own.files}
    return sorted(file for file in there - named if not OWN.fullmatch(file)), sorted(named - there)


def document_of(wheel: zipfile.ZipFile) -> dict[str, Any]:
    """Return the bill of materials of a wheel, in CycloneDX 1.6."""
    names = [name for name in wheel.namelist() if not name.endswith("/")]
    path = next(name for name in names if PurePosixPath(name).name == "METADATA")
    about = HeaderParser().parsestr(wheel.read(path).decode("utf-8"))
    name, version = about["Name"], about["Version"]
    own = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "licenses": [{"license": {"id": about["License-Expression"] or LICENCE}}],
    }
    needed = _needed(about.get_all("Requires-Dist", []))
    bundled = [_bundled(entry, {file: wheel.read(file) for file in entry.files}) for entry in BUNDLED]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [*bundled, *needed],
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": sorted({part["bom-ref"] for part in needed})}],
    }


def _needed(requirements: Iterable[str]) -> list[dict[str, Any]]:
    """Return an entry for each package that users install beside the wheel, always or with an extra."""
    found: dict[str, dict[str, str]] = {}
    for requirement in requirements:
        stated, _, marker = requirement.partition(";")
        parts = re.fullmatch(r"\s*([\w.-]+)\s*(\[[^]]*\])?\s*(.*?)\s*", stated)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        told = extra[1] if extra else ""
        # an extra may name others of the same package
        if parts is not None and parts[1].lower() != "caviar" and told not in OF_DEVELOPERS:
            found.setdefault(parts[1].lower(), {})[told] = parts[3]
    return [_package(name, extras) for name, extras in sorted(found.items())]


def _package(name: str, extras: Mapping[str, str]) -> dict[str, Any]:
    """Return an entry for a package: extra that needs it, or empty -> the versions."""
    told = [
        {"name": f"caviar:extra:{extra}" if extra else "caviar:always", "value": versions}
        for extra, versions in sorted(extras.items())
    ]
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}",
        "name": name,
        "purl": f"pkg:pypi/{name}",
        "scope": "required" if "" in extras else "optional",
        "properties": told,
    }


def _bundled(entry: Bundled, contents: Mapping[str, bytes]) -> dict[str, Any]:
    """Return an entry for what the wheel holds of others, with the digests of its files."""
    is_spdx = re.fullmatch(r"[\w.-]+", entry.licence) is not None
    return {
        "type": "data",
        "bom-ref": f"bundled:{entry.name}",
        "name": entry.name,
        "description": entry.source,
        "licenses": [{"license": {"id" if is_spdx else "name": entry.licence}}],
        "components": [
            {
                "type": "file",
                "bom-ref": f"file:{file}",
                "name": file,
                "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
            }
            for file, content in contents.items()
        ],
    }


def main() -> int:
    """Print the bill of materials of the wheel that the command names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel")
    with zipfile.ZipFile(parser.parse_args().wheel) as wheel:
        unknown, missing = unlisted(name for name in wheel.namelist() if not name.endswith("/"))
        for file in unknown:
            sys.stderr.write(f"{file}: no entry of BUNDLED names it, with its source and licence\n")
        for file in missing:
            sys.stderr.write(f"{file}: an entry of BUNDLED names it, and the wheel lacks it\n")
        if unknown or missing:
            return 1
        json.dump(document_of(wheel), sys.stdout, indent=2)
        sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
