"""Where a user's work tree is, and what git keeps beside it: found by looking, without running anything."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class NoTree(Exception):
    """There is no tree to be had, and the message says why in words for a person."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WorkTree(Struct, frozen=True):
    """A work tree of a user's and where git keeps what belongs to it."""

    root: Path
    objects: Path
    index: Path
    """The user's own: read once, to begin with what git knows of the files already."""
    excludes: tuple[Path, ...]
    """Lists of what is ignored beside `.gitignore`."""
    is_sha256: bool


def work_tree_of(working_dir: str) -> WorkTree:
    """The work tree that a folder is in. Reads no config but for the kind of its names. Raises `NoTree`."""
    start = Path(working_dir)
    if not start.is_absolute():
        raise NoTree("the session's working_dir is not an absolute path")
    if not start.is_dir():
        raise NoTree("the session's working_dir is not there any more")
    start = start.resolve()
    for root in (start, *start.parents):
        found = root / ".git"
        try:
            if found.is_dir() or found.is_file():
                return _work_tree(root, found)
        except OSError as refused:
            raise NoTree(f"the repository cannot be read: {refused.strerror}") from None
    raise NoTree("the session's working_dir is in no git work tree")


def _work_tree(root: Path, found: Path) -> WorkTree:
    git_dir = found
    if found.is_file():
        # A further work tree or a submodule: "gitdir: <path>" (gitrepository-layout).
        line = _head(found).partition("\n")[0]
        if not line.startswith("gitdir: "):
            raise NoTree("the work tree's .git is no repository")
        git_dir = root / line.removeprefix("gitdir: ").strip()
    shared = git_dir
    if (git_dir / "commondir").is_file():
        shared = git_dir / _head(git_dir / "commondir").strip()
    if not (git_dir / "HEAD").exists() or not (shared / "objects").is_dir():
        raise NoTree("the session's working_dir is in no git work tree")
    excludes = shared / "info" / "exclude"
    return WorkTree(
        root=root,
        objects=(shared / "objects").resolve(),
        index=git_dir / "index",
        excludes=(excludes,) if excludes.is_file() else (),
        is_sha256=_is_sha256(shared / "config"),
    )


def _head(file: Path) -> str:
    """What can be a path: whoever made the repository may have made the file as large as the disk."""
    with file.open("rb") as opened:
        return opened.read(8192).decode("utf-8", "surrogateescape")


def _is_sha256(config: Path) -> bool:
    """The repository names its objects by SHA-256 (`extensions.objectFormat`)."""
    if not config.is_file() or config.stat().st_size > 1_000_000:
        return False
    lines = (line.partition("=") for line in config.read_text("utf-8", "replace").lower().splitlines())
    return any(name.strip() == "objectformat" and value.strip() == "sha256" for name, _, value in lines)
