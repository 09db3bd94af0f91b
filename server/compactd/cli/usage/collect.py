"""Read all session files with the help of the cache, and count each request once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from compactd._runtime.interpreter import paused_gc
from compactd.cli.agent_files.places import AgentFile
from compactd.cli.usage.cache import UsageCache
from compactd.cli.usage.readers import is_folder_session, is_lines, read_usage, source_of
from compactd.cli.usage.requests import FileUsage, Request


class Collected(Struct, frozen=True, kw_only=True):
    """What the session files report."""

    files: tuple[FileUsage, ...]
    unreadable: tuple[str, ...]
    """The files that could not be read, with the reason."""


def collect(
    files: Sequence[AgentFile], cache_file: Path, told: Callable[[str], None] | None = None
) -> Collected:
    """Return what `files` report, in an order in which copies follow what they were copied from. `told` is
    called with the progress. O(new bytes + requests).
    """
    with paused_gc():
        cache = UsageCache(cache_file)
        found: list[tuple[AgentFile, FileUsage]] = []
        unreadable: list[str] = []
        for number, file in enumerate(files, start=1):
            source = source_of(file.path, file.agent)
            path = str(source)
            # Of a session in many files, the first does not show whether another has changed.
            is_cached = not is_folder_session(source, file.agent)
            try:
                stat = source.stat()
                usage = cache.unchanged(path, stat) if is_cached else None
                if usage is None:
                    if told is not None:
                        told(f"reading session {number:,} of {len(files):,}")
                    earlier = cache.grown(path, stat) if is_lines(source, file.agent) else None
                    usage = read_usage(source, file.agent, earlier)
                    if is_cached:
                        cache.put(path, stat, usage)
            except OSError as error:
                cache.drop(path)
                unreadable.append(f"cannot read {path}: {error.strerror or error}")
                continue
            found.append((file, usage))
        cache.save()
    found.sort(key=lambda one: reading_order(*one))
    return Collected(files=tuple(usage for _, usage in found), unreadable=tuple(unreadable))


def reading_order(file: AgentFile, usage: FileUsage) -> tuple[bool, bool, int, Path]:
    """Return a sort key for an order in which copies follow what they were copied from."""
    return bool(usage.parent_id), file.is_subagent, file.modified_ns, file.path


def count_once(files: Iterable[FileUsage]) -> list[tuple[FileUsage, list[Request]]]:
    """Return each file with the requests that are counted for it. A request that several files contain counts
    for the first of them, with the numbers of the copy that has the most output tokens: an earlier copy was
    written while the answer still streamed. O(requests).

    Keys of Codex's requests are compared only among a session and its forks. Keys of other agents come from
    ids that are unique.
    """
    files = list(files)
    parents = {file.session_id: file.parent_id for file in files if file.agent == "codex"}
    seen_of: dict[str, dict[int, tuple[list[Request], int]]] = {}
    counted: list[tuple[FileUsage, list[Request]]] = []
    for file in files:
        is_codex = file.agent == "codex"
        name = f"codex {_root(file.session_id, parents)}" if is_codex else file.agent
        seen = seen_of.setdefault(name, {})
        kept: list[Request] = []
        for request in file.requests:
            key = request.key
            known = seen.get(key) if key else None
            if known is None:
                if key:
                    seen[key] = (kept, len(kept))
                kept.append(request)
            elif request.output > known[0][known[1]].output and known[0] is not kept:
                known[0][known[1]] = _with_model(request, known[0][known[1]])
        counted.append((file, kept))
    return counted


def _with_model(request: Request, first: Request) -> Request:
    """Return the copy `request` of `first`, with the place of the model in the file of `first`."""
    return Request(
        key=first.key,
        at=first.at,
        model=first.model,
        input=request.input,
        output=request.output,
        cache_write=request.cache_write,
        cache_write_1h=request.cache_write_1h,
        cache_read=request.cache_read,
        cost=request.cost,
    )


def _root(session_id: str, parents: dict[str, str]) -> str:
    """Return the session from which `session_id` was forked, over any number of forks."""
    passed: set[str] = set()
    while (parent := parents.get(session_id)) and session_id not in passed:
        passed.add(session_id)
        session_id = parent
    return session_id
