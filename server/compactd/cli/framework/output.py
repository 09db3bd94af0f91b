"""`--output`: the compacted context as a file that can be inspected, compacted and imported again."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Raw

from compactd._runtime.programs import project_root
from compactd.cli.framework.command import Flag
from compactd.cli.framework.exit_codes import NOTHING_TO_DO, USAGE, Stop
from compactd.cli.framework.load_file import TIMEOUT_S
from compactd.cli.framework.page import one_line
from compactd.client import Client
from compactd.protocol.wire import ContextResult

FORCE = Flag("--force", "replace a file that exists, without asking")
"""Of each command that writes a file which the person named."""


def writable(path: str, source: Path, *, force: bool) -> Path:
    """Where to write, if that is possible, not the file that is read, and no file that is to stay. Raises
    `Stop`."""
    target = Path(path)
    try:
        is_folder, has_place = target.is_dir(), target.parent.is_dir()
        is_source = target.exists() and target.samefile(source)
    except OSError as error:
        raise Stop(f"cannot write {path}: {error.strerror}.", exit_code=USAGE) from error
    if is_folder:
        raise Stop(f"cannot write {path}: it is a folder.", hint="Give a file.", exit_code=USAGE)
    refuse_links(target)
    if not has_place:
        raise Stop(f"cannot write {path}: there is no folder {target.parent}.", exit_code=USAGE)
    if is_source:
        raise Stop(
            f"cannot write {path}: it is the session file itself.",
            hint="Give another file: the original is never overwritten.",
            exit_code=USAGE,
        )
    refuse_to_overwrite(target, force=force)
    return target


def refuse_to_overwrite(target: Path, *, force: bool) -> None:
    """Keeps a file that exists: asks in a terminal, and refuses elsewhere. `force`: the person said so
    already. Raises `Stop`. What is no regular file, such as a pipe, has nothing to lose."""
    if force or not target.is_file():
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Stop(
            f"cannot write {target}: the file exists.",
            hint="Nothing was written. Give another file, or --force to replace this one.",
            exit_code=USAGE,
        )
    sys.stderr.write(f"{one_line(str(target))} exists. Replace it? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Stop(f"{target} stays as it is.", hint="Nothing was written.", exit_code=NOTHING_TO_DO)


def refuse_links(target: Path) -> None:
    """Refuses a link that would make us write somewhere else than `target` says. Raises `Stop`.

    That is `target` itself if it is a link out of its folder, or a folder above it if that is a link out of
    the project we stand in. A folder from a stranger may hold such links under the names one would choose.
    Links of the system in `/dev` and `/proc` are followed.
    """
    written = Path(os.path.abspath(target))  # noqa: PTH100 - `resolve` would follow the links
    if written.parts[1:2] in (("dev",), ("proc",)):
        return
    try:
        real, folder, project = written.resolve(), written.parent.resolve(), project_root(Path.cwd())
        leaves_folder = written.is_symlink() and folder not in real.parents
        leaves_project = project in written.parents and project not in real.parents
    except (OSError, RuntimeError) as error:
        raise Stop(f"cannot write {target}: its links lead nowhere.", exit_code=USAGE) from error
    if leaves_folder or leaves_project:
        raise Stop(
            f"cannot write {target}: it is, or is behind, a link to {real}.",
            hint="Nothing was written. If you mean that file, give its own path; otherwise remove the link.",
            exit_code=USAGE,
        )


def write_context(client: Client, session_id: str, target: Path, source_format: str) -> str:
    """Writes what the next request must contain; what was written, in a few words.

    OpenAI messages as a JSON array where the session came so; else neutral messages, one a line, the system
    prompt as the first. The file is there whole or not at all. Raises `Stop`.
    """
    shape = "openai" if source_format == "openai" else "neutral"
    params = {"session_id": session_id, "format": shape}
    context = client.ask("session/context", params, ContextResult, timeout_s=TIMEOUT_S)
    messages = [_without_report(raw) for raw in context.messages]
    if isinstance(context.system, str):
        messages.insert(0, Raw(msgspec.json.encode({"role": "system", "content": context.system})))
    data = _array(messages) if shape == "openai" else _lines(messages)
    try:
        write_beside(target, data)
    except OSError as error:
        raise Stop(f"cannot write {target}: {error.strerror}.", hint="Nothing was written.") from error
    kind = "OpenAI messages, a JSON array" if shape == "openai" else "neutral messages, one a line"
    return f"{len(messages):,} {kind}"


def _without_report(raw: Raw) -> Raw:
    """The message without its usage report, which would be taken for one of this context."""
    fields = msgspec.json.decode(raw, type=dict[str, Raw])
    return Raw(msgspec.json.encode(fields)) if fields.pop("usage", None) is not None else raw


def _array(messages: Sequence[Raw]) -> bytes:
    return b"[\n" + b",\n".join(bytes(raw) for raw in messages) + b"\n]\n"


def _lines(messages: Sequence[Raw]) -> bytes:
    # A user's own JSON may hold line ends, but only between its tokens.
    return b"".join(bytes(raw).replace(b"\n", b" ") + b"\n" for raw in messages)


def write_beside(target: Path, data: bytes) -> None:
    """Writes `data` to `target`: whole or not at all, a new file for its owner alone. Raises `OSError`."""
    if target.exists() and not target.is_file():
        # A pipe or a device: nothing to put in its place.
        target.write_bytes(data)
        return
    place = target.resolve()
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        if place.exists():
            beside.chmod(place.stat().st_mode & 0o777)
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
