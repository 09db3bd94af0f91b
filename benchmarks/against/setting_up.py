"""Installs the contenders from PyPI and npm, each once in its own environment, never in the project's own.

    python -m benchmarks.against.setting_up [NAME ...]

Prints what it installs before it does. A contender that cannot be installed is left out, and the table says
why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import sleep

from benchmarks.against.places import PLACES, Place, cache, folder_of, is_there, python_of

TRIES = 3
PAUSE_S = 5.0
"""Before the second try; twice that before the third."""

PATIENCE_S = 1_500.0
"""Seconds for one command of pip or npm."""

TOLD_CHARS = 300
"""How much of the end of a failed command's output is shown."""


class NotInstalled(Exception):
    """A peer cannot be had on this machine, and why."""


def set_up(places: Sequence[Place] = PLACES, say: Callable[[str], None] = print) -> None:
    """Installs those that are not there; leaves a file `failed` with the reason where one cannot be."""
    missing = [place for place in places if not is_there(place)]
    if not missing:
        return
    total = sum(place.size_mb for place in missing)
    say(f"installing {len(missing)} of the peers' environments, about {total} MB, in {cache()}")
    for place in missing:
        say(f"  {place.name}: {', '.join((*place.python, *place.node))} (about {place.size_mb} MB)")
        try:
            _install(place, say)
        except NotInstalled as why:
            say(f"  {place.name} is left out: {why}")
            (folder_of(place) / "failed").write_text(f"{why}\n", "utf-8")


def _install(place: Place, say: Callable[[str], None]) -> None:
    folder = folder_of(place)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _run([_interpreter(place.least), "-m", "venv", str(folder / "venv")], folder, say)
    python = str(python_of(place))
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    _run([*pip, "install", "--quiet", "--retries", "5", *place.python], folder, say)
    listed = _run([*pip, "list", "--format=freeze"], folder, say).split()
    if place.node:
        (folder / "package.json").write_text('{"private": true}\n', "utf-8")
        options = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
        _run([_npm(python), "install", "--save-exact", *options, *place.node], folder, say)
        listed += place.node
    (folder / "installed").write_text("".join(f"{line}\n" for line in sorted(listed)), "utf-8")


def _npm(python: str) -> str:
    beside = shutil.which("npm", path=str(Path(python).parent))
    if beside is None:
        raise NotInstalled("npm is not there")
    return beside


def _run(command: Sequence[str], folder: Path, say: Callable[[str], None]) -> str:
    """Run a command and return what it prints. Try three times, because registries fail now and then. Raise
    `NotInstalled` after that."""
    # A virtual environment's own variables, and pip's target ones, would install somewhere else.
    foreign = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")
    env = {name: value for name, value in os.environ.items() if name not in foreign}
    env["PATH"] = os.pathsep.join((str(folder / "venv" / "bin"), env.get("PATH", os.defpath)))
    told = ""
    for attempt in range(TRIES):
        if attempt:
            say(f"    again, as it failed: {told}")
            sleep(PAUSE_S * attempt)
        try:
            done = subprocess.run(
                list(command), cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            told = str(error)[:TOLD_CHARS]
            continue
        if done.returncode == 0:
            return done.stdout
        said = " ".join((done.stderr or done.stdout).split())
        told = said[said.rfind("ERROR: ") :][-TOLD_CHARS:] if "ERROR: " in said else said[-TOLD_CHARS:]
    raise NotInstalled(told)


def _interpreter(least: tuple[int, int]) -> str:
    """The oldest Python here that is new enough: peers publish wheels for older ones first."""
    for version, path in sorted(_interpreters()):
        if version >= least:
            return path
    wanted = ".".join(map(str, least))
    raise NotInstalled(f"needs Python {wanted}, which is not on this machine's PATH")


def _interpreters() -> Iterator[tuple[tuple[int, int], str]]:
    yield sys.version_info[:2], sys.executable
    for minor in range(11, 15):
        named = shutil.which(f"python3.{minor}")
        kept = map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))
        for path in (*([named] if named else []), *kept):
            told = subprocess.run(
                [path, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True
            )
            if told.stdout.strip() == str(minor):
                yield (3, minor), path


if __name__ == "__main__":
    set_up([place for place in PLACES if not sys.argv[1:] or place.name in sys.argv[1:]])
