"""The files that differ between two git trees, with their contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import UNSET, UnsetType

from compactd.protocol.wire import FileDiff
from compactd.session.git.program import Git

CONTENT_BYTES = 256 * 1024
"""The size in bytes of the largest file whose content a diff shows. Larger files are listed without
content."""

MAX_DIFF_BYTES = 16 * 1024 * 1024
"""The most bytes of content that a diff shows: the old and new contents of all files combined. Files over
this limit are listed without content."""

_NO_FILE = "0" * 6
"""The file mode that git prints for the tree in which the file does not exist."""

_SUBMODULE = "160000"

ChangeStatus = Literal["added", "modified", "deleted"]


def difference(git: Git, before: str, after: str) -> tuple[FileDiff, ...]:
    """Return the files that differ between the git trees with the names `before` and `after`, sorted by path.
    Raises `NoTree` if git fails.
    """
    compare = ("diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")
    shown = git.run(*compare, "--raw", before, after)
    lines = git.run(*compare, "--numstat", before, after)
    counts = dict(_line_counts(lines))
    sides = list(_sides(shown))
    wanted = [name for _, old, new, path in sides if path in counts for name in (old, new) if name]
    texts = _contents(git, wanted)
    return tuple(
        FileDiff(
            file=path.decode("utf-8", "replace"),
            status=status,
            additions=(counts.get(path) or (0, 0))[0],
            deletions=(counts.get(path) or (0, 0))[1],
            before=_side(old, path in counts, texts),
            after=_side(new, path in counts, texts),
        )
        for status, old, new, path in sides
    )


def _side(name: str, is_text: bool, texts: Mapping[str, str]) -> str | UnsetType:
    """Return the content of one side, which is empty if the file does not exist there. Return `UNSET` for a
    file that is not text or is too large.
    """
    if not is_text:
        return UNSET
    return texts.get(name, UNSET) if name else ""


def _sides(shown: bytes) -> Iterator[tuple[ChangeStatus, str, str, bytes]]:
    r"""Yield (status, object before, object after, path) from `:mode mode name name S\0path\0` records.

    An object's name is empty if the file does not exist in that tree.
    """
    fields = iter(shown.split(b"\0"))
    for head in fields:
        if not head:
            continue
        path = next(fields, b"")
        mode_before, mode_after, before, after, _ = head[1:].decode("ascii").split(" ")
        if _SUBMODULE in (mode_before, mode_after):
            continue
        if mode_before == _NO_FILE:
            yield "added", "", after, path
        elif mode_after == _NO_FILE:
            yield "deleted", before, "", path
        else:
            yield "modified", before, after, path


def _line_counts(lines: bytes) -> Iterator[tuple[bytes, tuple[int, int]]]:
    r"""Yield (path, (lines added, lines removed)) for each text file.

    The input is `1\t2\tpath\0`, with `-` for binary files.
    """
    for line in lines.split(b"\0"):
        added, _, rest = line.partition(b"\t")
        removed, _, path = rest.partition(b"\t")
        if added.isdigit() and removed.isdigit():
            yield path, (int(added), int(removed))


def _contents(git: Git, names: Sequence[str]) -> dict[str, str]:
    """Return the texts of these git objects by name. Objects above the size limits, and those that are not
    UTF-8, are left out.
    """
    asked = list(dict.fromkeys(names))
    if not asked:
        return {}
    sizes = git.run("cat-file", "--batch-check", given=_lines(asked)).split(b"\n")
    fitting: list[str] = []
    total = 0
    for name, line in zip(asked, sizes, strict=False):
        size = line.rsplit(b" ", 1)[-1]
        if not size.isdigit() or int(size) > CONTENT_BYTES or total + int(size) > MAX_DIFF_BYTES:
            continue
        total += int(size)
        fitting.append(name)
    out = git.run("cat-file", "--batch", given=_lines(fitting))
    texts: dict[str, str] = {}
    at = 0
    for name in fitting:
        end = out.index(b"\n", at)
        size_bytes = int(out[at:end].rsplit(b" ", 1)[-1])
        data = out[end + 1 : end + 1 + size_bytes]
        at = end + 1 + size_bytes + 1
        try:
            texts[name] = data.decode("utf-8")
        except UnicodeDecodeError:
            continue
    return texts


def _lines(names: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode("ascii")
