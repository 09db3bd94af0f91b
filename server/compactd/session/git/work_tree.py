"""Find a user's git work tree and the files that git keeps for it, without running git."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class NoTree(Exception):
    """There is no usable git work tree or no usable snapshot. The message tells the user why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WorkTree(Struct, frozen=True):
    """A user's work tree, and the paths of its git objects and its index."""

    root: Path
    objects: Path
    index: Path
    """The file of the user's index. The first snapshot copies it, so that it need not read files that git
    already knows."""
    excludes: tuple[Path, ...]
    """Files with ignore patterns, in addition to `.gitignore`."""
    is_sha256: bool


def work_tree_of(working_dir: str) -> WorkTree:
    """Return the work tree that contains the folder `working_dir`. Raises `NoTree` if there is none.

    Of the repository's config, only the hash algorithm is read.
    """
    start = Path(working_dir)
    if not start.is_absolute():
        raise NoTree("the session's working_dir is not an absolute path")
    if not start.is_dir():
        raise NoTree("the session's working_dir no longer exists")
    start = start.resolve()
    for root in (start, *start.parents):
        found = root / ".git"
        try:
            if found.is_dir() or found.is_file():
                return _work_tree(root, found)
        except OSError as refused:
            raise NoTree(f"the repository cannot be read: {refused.strerror}") from None
    raise NoTree("the session's working_dir is not in a git work tree")


def _work_tree(root: Path, found: Path) -> WorkTree:
    git_dir = found
    if found.is_file():
        # An additional work tree or a submodule: "gitdir: <path>" (gitrepository-layout).
        line = _head(found).partition("\n")[0]
        if not line.startswith("gitdir: "):
            raise NoTree("the work tree's .git is not a repository")
        git_dir = root / line.removeprefix("gitdir: ").strip()
    shared = git_dir
    if (git_dir / "commondir").is_file():
        shared = git_dir / _head(git_dir / "commondir").strip()
    if not (git_dir / "HEAD").exists() or not (shared / "objects").is_dir():
        raise NoTree("the session's working_dir is not in a git work tree")
    excludes = shared / "info" / "exclude"
    return WorkTree(
        root=root,
        objects=(shared / "objects").resolve(),
        index=git_dir / "index",
        excludes=(excludes,) if excludes.is_file() else (),
        is_sha256=_is_sha256(shared / "config"),
    )


def _head(file: Path) -> str:
    """Return the first 8 KiB of a file: enough for a path. A hostile repository can contain huge files."""
    with file.open("rb") as opened:
        return opened.read(8192).decode("utf-8", "surrogateescape")


def _is_sha256(config: Path) -> bool:
    """Return true if the repository uses SHA-256 object names (`extensions.objectFormat`)."""
    if not config.is_file() or config.stat().st_size > 1_000_000:
        return False
    lines = (line.partition("=") for line in config.read_text("utf-8", "replace").lower().splitlines())
    return any(name.strip() == "objectformat" and value.strip() == "sha256" for name, _, value in lines)
