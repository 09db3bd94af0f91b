"""How this compactd was installed: which command adds a package, and which path of its script is stable.

Each installer leaves a file in its environment: pipx `pipx_metadata.json` (1.18), uv `uv-receipt.toml` for a
tool, and `uv = VERSION` in `pyvenv.cfg` (0.13; all read 2026-11). pip writes the source of the package to
`direct_url.json` (PEP 610).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from compactd._runtime.programs import MARKS, is_inside, project_root, safe_entries

NAME: Final = "compactd"
SUITE: Final = "compactd-conformance"

Kind = Literal["pipx", "uv tool", "clone", "uv", "pip"]
"""`clone`: an editable installation. `uv`: an environment of uv, which has no pip. `pip`: every other one."""


class Installation(NamedTuple):
    """How this compactd was installed."""

    kind: Kind
    prefix: Path
    """The folder of the environment."""
    environment: str = NAME
    """The name that pipx knows the environment by."""
    source: str = ""
    """The folder of the clone. For a tool of uv: the arguments that install compactd again."""
    additions: tuple[str, ...] = ()
    """What was already added to a tool of uv."""

    @property
    def python(self) -> Path:
        """The Python of the environment."""
        for name in ("bin/python", "Scripts/python.exe"):
            if (self.prefix / name).exists():
                return self.prefix / name
        return Path(sys.executable)


def installation(prefix: Path | None = None) -> Installation:
    """Return how the compactd in the environment at `prefix` was installed; without `prefix`, this one."""
    prefix = prefix or Path(sys.prefix)
    about = _json(prefix / "pipx_metadata.json")
    if about is not None:
        name = about.get("environment")
        return Installation("pipx", prefix, name if isinstance(name, str) else prefix.name)
    receipt = _text(prefix / "uv-receipt.toml")
    if receipt is not None:
        source, additions = _receipt(receipt)
        return Installation("uv tool", prefix, source=source, additions=additions)
    clone = _clone()
    has_pip = any(prefix.glob("lib/python*/site-packages/pip")) or (prefix / "Lib/site-packages/pip").exists()
    if not has_pip and re.search(r"^uv\s*=", _text(prefix / "pyvenv.cfg") or "", re.MULTILINE):
        return Installation("uv", prefix)
    return Installation("clone", prefix, source=clone) if clone else Installation("pip", prefix)


def install_command(extra: str) -> str:
    """Return the shell command that adds an extra of compactd (`tui`, `mcp`) to this installation."""
    here = installation()
    if here.kind == "clone":
        is_here = Path(here.source) == Path.cwd()
        python, source = (os.path.relpath(here.python), ".") if is_here else (str(here.python), here.source)
        return shlex.join([python, "-m", "pip", "install", "--editable", f"{source}[{extra}]"])
    return _add(here, requirements(extra))


def suite_command() -> str:
    """Return the shell command that adds the conformance suite to this installation."""
    here = installation()
    if here.kind == "clone":
        folder = str(Path(here.source) / "conformance")
        return shlex.join([str(here.python), "-m", "pip", "install", "--editable", folder])
    # The suite is released together with compactd.
    version = metadata.version(NAME)
    return _add(here, (f"./{SUITE.replace('-', '_')}-{version}-py3-none-any.whl",))


def _add(here: Installation, wanted: tuple[str, ...]) -> str:
    match here.kind:
        case "pipx":
            return shlex.join(["pipx", "inject", here.environment, *wanted])
        case "uv tool":
            # uv installs the tool again, so earlier additions are named again.
            added = [part for one in (*here.additions, *wanted) for part in ("--with", one)]
            return " ".join([shlex.join(["uv", "tool", "install", *added]), here.source])
        case "uv":
            return shlex.join(["uv", "pip", "install", "--python", str(here.python), *wanted])
        case _:
            return shlex.join([str(here.python), "-m", "pip", "install", *wanted])


def requirements(extra: str) -> tuple[str, ...]:
    """Return the requirements of an extra, such as `textual<9,>=8`. If compactd is not installed, return the
    extra itself.
    """
    try:
        wanted = metadata.requires(NAME) or ()
    except metadata.PackageNotFoundError:
        wanted = ()
    pattern = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    found = tuple(one.partition(";")[0].strip() for one in wanted if pattern.search(one.partition(";")[2]))
    return found or (f"{NAME}[{extra}]",)


def _receipt(text: str) -> tuple[str, tuple[str, ...]]:
    """Return (the arguments that install compactd, what was added to it) of a receipt of uv."""
    try:
        rows = tomllib.loads(text)["tool"]["requirements"]
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        return NAME, ()
    source, additions = NAME, []
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            continue
        words = _words(row)
        if row.get("name") == NAME:
            source = shlex.join(words)
        else:
            additions.append(words[-1])
    return source, tuple(additions)


def _words(row: Mapping[str, object]) -> list[str]:
    """Return one requirement of a receipt as arguments of `uv tool install`."""
    if "editable" in row:
        return ["--editable", str(row["editable"])]
    for key in ("path", "directory", "url"):
        if key in row:
            return [str(row[key])]
    name = str(row.get("name"))
    extras = row.get("extras")
    if isinstance(extras, list) and extras:
        name += f"[{','.join(map(str, extras))}]"
    if "git" in row:
        return [f"{name} @ git+{row['git']}"]
    return [f"{name}{row.get('specifier', '')}"]


def _clone() -> str:
    """Return the folder of the sources if this is an editable installation; otherwise an empty text."""
    try:
        url = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return ""
    try:
        about = json.loads(url or "{}")
        if about.get("dir_info", {}).get("editable"):
            return unquote(urlsplit(about["url"]).path)
    except (ValueError, AttributeError, KeyError):
        pass
    return ""


def stable_program(script: Path, path: str | None) -> Path:
    """Return the path of the script `compactd` that is likely to last longest: a link to it on `path`, a
    `PATH`, or the link that pipx or uv made; otherwise `script` itself.
    """
    try:
        target = script.resolve()
    except (OSError, RuntimeError):
        return script
    prefix = Path(sys.prefix).resolve()
    for one in _links(script.name, path):
        try:
            is_same = one.is_symlink() and one.resolve() == target and os.access(one, os.X_OK)
        except (OSError, RuntimeError):
            continue
        if is_same and not is_inside(one.parent, prefix) and not _is_in_project(one.parent):
            return one
    return script


def _links(name: str, path: str | None) -> Iterator[Path]:
    """Yield the places where a link to the script may be."""
    for entry in safe_entries(path, None):
        yield Path(entry) / name
    for variable in ("PIPX_BIN_DIR", "UV_TOOL_BIN_DIR", "XDG_BIN_HOME"):
        folder = os.environ.get(variable)
        if folder and Path(folder).is_absolute():
            yield Path(folder) / name
    try:
        yield Path.home() / ".local" / "bin" / name
    except RuntimeError:
        return


def _is_in_project(folder: Path) -> bool:
    root = project_root(folder)
    return any((root / mark).exists() for mark in MARKS)


def what_breaks(program: Path) -> str:
    """Return what breaks a command that runs `program`, as a sentence."""
    here = installation()
    if program.is_symlink() and not is_inside(program.parent, here.prefix):
        match here.kind:
            case "pipx":
                return f"pipx keeps this link. `pipx uninstall {here.environment}` removes it."
            case "uv tool":
                return f"uv keeps this link. `uv tool uninstall {NAME}` removes it."
            case _:
                return f"It is a link to {program.resolve()}, and breaks if that is moved or deleted."
    folder = here.prefix
    if here.kind == "clone" and is_inside(folder, Path(here.source)):
        folder = Path(here.source)
    return f"It breaks if {folder} is moved or deleted."


def _json(path: Path) -> dict[str, object] | None:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else {}


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return None
