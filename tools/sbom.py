"""Writes the software bill of materials as CycloneDX 1.6 JSON: `python tools/sbom.py [--dev] [FILE]`.

Without FILE, it prints to stdout. It is made from `requirements.lock` (`--dev`: `requirements-dev.lock`). A
licence is included if exactly that version is installed. The document contains no time, and its serial number
depends only on its content: the same lock in the same environment gives the same bytes.

(CycloneDX 1.6 specification, JSON reference; package URLs: purl-spec, `pypi`.)
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
import uuid
from importlib import metadata
from pathlib import Path

import lock


def licence(name: str, version: str) -> str:
    """Returns the licence that the installed package declares; empty if this version is not installed."""
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    if about["Version"] != version:
        return ""
    for field in ("License-Expression", "License"):
        text = about[field].strip() if field in about else ""
        if text and "\n" not in text and len(text) < 80:
            return text
    kinds = [
        one.rpartition(" :: ")[2] for one in about.get_all("Classifier", []) if one.startswith("License ::")
    ]
    return " AND ".join(kinds)


def component(one: lock.Pinned) -> dict[str, object]:
    """Returns the entry of one package of the lock."""
    purl = f"pkg:pypi/{one.name}@{one.version}"
    made: dict[str, object] = {
        "type": "library",
        "bom-ref": purl,
        "name": one.name,
        "version": one.version,
        "purl": purl,
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{one.name}/{one.version}/#files",
                "hashes": [{"alg": "SHA-256", "content": sha256} for sha256 in one.sha256],
            }
        ],
    }
    if one.marker:
        made["properties"] = [{"name": "pep508:marker", "value": one.marker}]
    if text := licence(one.name, one.version):
        made["licenses"] = [{"license": {"name": text}}]
    return made


def bom(name: str) -> dict[str, object]:
    """Returns the document for one of the locks."""
    project = tomllib.loads((lock.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pinned = lock.read(lock.ROOT / name)
    refs: dict[str, list[str]] = {}
    for one in pinned:
        refs.setdefault(one.name, []).append(f"pkg:pypi/{one.name}@{one.version}")
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    direct = sorted({ref for wanted, _ in lock.asked(lock.LOCKS[name]) for ref in refs.get(wanted, ())})
    root = {
        "type": "application",
        "bom-ref": own,
        "name": project["name"],
        "version": project["version"],
        "purl": own,
        "licenses": [{"license": {"id": project["license"]}}],
    }
    body: dict[str, object] = {
        "metadata": {"component": root},
        "components": [component(one) for one in pinned],
        "dependencies": [{"ref": own, "dependsOn": direct}],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        **body,
    }


def main() -> int:
    """Writes or prints the document. Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", nargs="?", help="the file to write; without it, print to stdout")
    parser.add_argument("--dev", action="store_true", help="include what tests and checks need")
    given = parser.parse_args()
    text = json.dumps(bom("requirements-dev.lock" if given.dev else "requirements.lock"), indent=1) + "\n"
    if given.file:
        Path(given.file).write_text(text, "utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
