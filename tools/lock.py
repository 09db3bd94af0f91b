"""Writes the lock files of dependencies, pinned by hash: `python tools/lock.py`. `--check` compares them.

`requirements.lock` contains what the daemon needs to run, including the full-screen chat.
`requirements-dev.lock` adds what tests and checks need. `requirements-build.lock` contains what builds the
wheels: the build backend, and `build`, which calls it. Each is valid for every platform and every Python from
3.11 on. `pip install --require-hashes -r requirements.lock` installs exactly these files. The conformance
suite (`conformance/pyproject.toml`) needs only compactd, so no lock is needed for it.

pip downloads its own backend for each build, without hashes. `make dist` builds with the locked one
(`--no-isolation`), so that the same sources give the same wheel, byte for byte.

Writing needs uv (`pip install uv`) and the package index; each package gets the newest version that
`pyproject.toml` allows. `--check` needs neither; exit code 1 means that a lock does not match
`pyproject.toml`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LOCKS = {"requirements.lock": ("tui",), "requirements-dev.lock": ("tui", "dev")}
"""Lock file -> the extras of `pyproject.toml` that it contains."""

BUILD_LOCK = "requirements-build.lock"
FRONTEND = "build"
"""The program in the extra `dev` that calls the backend."""

HEAD = "# Written by tools/lock.py from pyproject.toml. Install it with: pip install --require-hashes -r {}\n"

_PINNED = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)(?: ; (?P<marker>[^\\]*?))? \\?$")
_HASH = re.compile(r"^ {4}--hash=sha256:(?P<sha256>[0-9a-f]{64})(?: \\)?$")
_LIMIT = re.compile(r"(>=|<=|==|!=|<|>)\s*([0-9][0-9.]*)")


class Pinned(NamedTuple):
    """One package of a lock."""

    name: str
    version: str
    marker: str
    """Where it is needed, as a marker of PEP 508; empty means everywhere."""
    sha256: tuple[str, ...]
    """Hashes of all files of this version in the index: a wheel for every platform, and the source."""


def normal(name: str) -> str:
    """Returns a package's name as the index compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read(path: Path) -> tuple[Pinned, ...]:
    """Returns the packages of a lock. Raises `ValueError` with the line that is neither a
    package nor a hash.
    """
    found: list[Pinned] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if (hashed := _HASH.match(line)) and found:
            last = found[-1]
            found[-1] = last._replace(sha256=(*last.sha256, hashed["sha256"]))
        elif pin := _PINNED.match(line if line.endswith("\\") else f"{line} \\"):
            found.append(Pinned(normal(pin["name"]), pin["version"], (pin["marker"] or "").strip(), ()))
        else:
            raise ValueError(f"{path.name}:{number}: neither a pinned package nor a hash")
    return tuple(found)


def asked(extras: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields (name, limits) of the direct dependencies in `pyproject.toml`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    for text in [*project["dependencies"], *(one for extra in extras for one in optional[extra])]:
        yield _parted(text)


def asked_to_build() -> tuple[str, ...]:
    """Returns the build requirements in `pyproject.toml`."""
    file = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    tools = file["project"]["optional-dependencies"]["dev"]
    return (*file["build-system"]["requires"], *(text for text in tools if _parted(text)[0] == FRONTEND))


def _parted(requirement: str) -> tuple[str, str]:
    """Splits a requirement into (name, limits)."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return normal(name.group()), requirement[name.end() :].partition(";")[0]


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.match(r"[0-9.]+", version).group().strip(".").split(".")]  # type: ignore[union-attr]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def fits(version: str, limits: str) -> bool:
    """Returns whether a version is within limits such as `>=1.2,<2`."""
    at = _numbers(version)
    for sign, text in _LIMIT.findall(limits):
        limit = _numbers(text)
        holds = {
            ">=": at >= limit,
            "<=": at <= limit,
            "==": at == limit,
            "!=": at != limit,
            "<": at < limit,
            ">": at > limit,
        }
        if not holds[sign]:
            return False
    return True


def problems() -> Iterator[str]:
    """Yields the differences between the locks and `pyproject.toml`, in words."""
    wanted_by = {name: tuple(asked(extras)) for name, extras in LOCKS.items()}
    wanted_by[BUILD_LOCK] = tuple(_parted(text) for text in asked_to_build())
    for name, requirements in wanted_by.items():
        try:
            pinned = read(ROOT / name)
        except (OSError, ValueError) as error:
            yield f"{name}: {error}"
            continue
        versions: dict[str, list[str]] = {}
        for one in pinned:
            versions.setdefault(one.name, []).append(one.version)
            if not one.sha256:
                yield f"{name}: {one.name} has no hash"
        for wanted, limits in requirements:
            if wanted not in versions:
                yield f"{name}: {wanted} is missing"
            elif not all(fits(version, limits) for version in versions[wanted]):
                yield f"{name}: {wanted} {', '.join(versions[wanted])} is not within {limits}"


def write() -> None:
    """Writes all locks with uv. Raises `CalledProcessError` if uv finds no solution."""
    for name, extras in LOCKS.items():
        _compile(name, ["pyproject.toml", *(f"--extra={extra}" for extra in extras)])
    # Constrained to the versions of the other lock, so that the tested versions build the wheel.
    _compile(BUILD_LOCK, ["-", "--constraint=requirements-dev.lock"], "\n".join(asked_to_build()))


def _compile(name: str, sources: Sequence[str], requirements: str = "") -> None:
    command = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--quiet", "--generate-hashes"]
    command += ["--no-annotate", "--no-header", "--python-version", "3.11"]
    command += ["--no-emit-index-url", "--no-emit-find-links"]
    # Without --output-file, because uv would keep the versions of the old lock.
    done = subprocess.run(
        [*command, *sources], cwd=ROOT, check=True, capture_output=True, input=requirements.encode()
    )
    (ROOT / name).write_text(HEAD.format(name) + done.stdout.decode(), "utf-8")


def main() -> int:
    """Writes the locks, or only checks them. Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; print the differences")
    if not parser.parse_args().check:
        write()
    found = list(problems())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
