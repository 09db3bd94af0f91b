"""`compactd hook AGENT`: the command that agents run at their events, to mirror the session and restore
facts.

After the agent's own compaction, the hook's answer contains facts that the agent's summary lost. The hook
must never disturb the agent: its exit code is always 0, only an answer is written to stdout, and a deadline
ends it. Failures are written to the hooks' log.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from pathlib import Path

    from compactd.integrations.hooks.events import HookEvent
    from compactd.integrations.hooks.hook_state import HookState, HookStateFiles
    from compactd.integrations.hooks.mirror import Mirror
    from compactd.integrations.hooks.transcripts import Transcript

DEADLINE_S: Final = 2.0
MAX_PAYLOAD_CHARS: Final = 9_500
"""The most characters of a restored text. Claude Code writes output longer than 10,000 characters to a file
(hooks reference, 2.1.240); Codex truncates at about 10 kB (0.169.0, run 2026-11).
"""
KEPT_TOKENS: Final = 20_000
"""How many tokens of the newest messages stay word for word next to a summary of compactd."""
READING_SHARE: Final = 0.5
"""The share of the deadline for reading new lines of the transcript. Further lines are read at the next
event.
"""
AHEAD_SHARE: Final = 0.2
"""The share of the deadline for waiting for the process that read the messages ahead."""
LAG_SHARE: Final = 0.25
"""The share of the deadline for waiting until the transcript contains the compaction."""
MAX_MIRRORED_TOKENS: Final = 600_000
"""The most tokens of removed messages that are examined, about half a second of work. If a run takes too
long, the next run examines half as many tokens.
"""
MAX_ATTEMPTS: Final = 3
LAG_STEP_S: Final = 0.02
LOCK_STEP_S: Final = 0.01
MAX_EVENT_BYTES: Final = 1 << 24
"""The most bytes of an event. A larger event is read from stdin, but ignored."""


class Options(Struct, frozen=True, kw_only=True):
    """The options of a hook."""

    deadline_s: float = DEADLINE_S
    most_chars: int = MAX_PAYLOAD_CHARS
    kept_tokens: int = KEPT_TOKENS
    steers: bool = True
    """Whether the hook tells the model that writes the summary what it has to contain."""
    reduces: str = ""
    """How much of a tool's output is left out: `light`, `default` or `strong`; empty for nothing."""
    observes: bool = False
    """Whether the hook only counts what it would leave out."""


class Done(Struct, kw_only=True):
    """What a run of the hook did, for the hooks' log."""

    event: str = ""
    session: str = ""
    did: str = ""
    failed: str = ""
    begins_compaction: bool = False
    """Whether a compaction of the session begins, whose messages can be read ahead."""
    instead: list[bytes] = []
    """The answer to give if the run fails or takes too long; empty if there is none yet."""


def main(agent: str, options: Options) -> int:
    """Handle one event of `agent` from stdin, and write the answer to stdout. Always return 0."""
    began = time.monotonic()
    gc.disable()
    done = Done()
    stop_timer = _end_at(options.deadline_s, agent, done)
    data = b""
    try:
        try:
            data = _stdin()
            answer = run(agent, data, options, began, done, os.environ)
            done.instead.clear()
        except Exception as error:  # The agent must not see an error, so it is logged.
            done.failed = f"{type(error).__name__}: {_place_of(error)}"
            answer = _take_fallback(done)
        _write(answer)
    except OSError as error:
        done.failed = f"{type(error).__name__}: {_place_of(error)}"
    # An error of the log changes nothing for the agent.
    with suppress(Exception):
        _log(agent, done, began)
    with suppress(Exception):
        if done.begins_compaction:
            from compactd.integrations.hooks.ahead import start

            start(data)
    # While the interpreter ends, it has no handler for the timer's signal, which would kill the process.
    stop_timer()
    return 0


def _write(answer: bytes) -> None:
    """Write the answer directly to file descriptor 1. `sys.stdout` would print an error at exit if the agent
    has closed the pipe.
    """
    while answer:
        answer = answer[os.write(1, answer) :]


def _take_fallback(done: Done) -> bytes:
    """Return the answer of a run that failed or took too long: the user's constraints, if they are known by
    then; otherwise empty. A second call returns nothing.
    """
    try:
        answer = done.instead.pop()
    except IndexError:
        return b""
    done.did = (
        "restored only the user's constraints, because finding other lost facts took too long or failed"
    )
    return answer


def run(
    agent: str, data: bytes, options: Options, began: float, done: Done, environ: Mapping[str, str]
) -> bytes:
    """Handle the event of `agent` in `data`, the JSON from stdin. Return the bytes to print as the answer, or
    empty bytes if the hook has nothing to add.

    `began` is the time of `time.monotonic` at which the hook started. `environ` are the environment
    variables. For the log, `done` receives which event it was and what the hook did, or why it failed."""
    from compactd.integrations.hooks.events import agent_of, event_of

    known = agent_of(agent)
    if known is None:
        done.failed = "unknown agent"
        return b""
    event = event_of(known, data)
    if event is None:
        done.failed = "stdin contained no event (a JSON object)"
        return b""
    done.event, done.session = event.kind, event.session_id[:8]
    if event.kind == "other" or not event.session_id or (event.is_inner and known != "claude-code"):
        return b""
    if event.kind == "tool":
        from compactd.integrations.hooks.output_reduction import answer_tool

        return answer_tool(event, data, options, began + options.deadline_s * READING_SHARE, done, environ)
    from compactd.integrations.hooks.hook_state import files_of
    from compactd.storage.hook_files import forget_shown

    files = files_of(environ, agent, event.session_id)
    if not is_safe(files.folder, done):
        return b""
    if _is_context_changed(event):
        # Also if another hook of the session is still running: no mark may refer to what is gone.
        forget_shown(files.folder, files.stem, event.agent_id)
    return _answer_locked(event, data, files, options, began, done)


def is_safe(folder: Path, done: Done) -> bool:
    """Create the folder of the hooks' files. Return whether only the user can change it."""
    from compactd.storage.files import make_folder
    from compactd.storage.write_access import exposure

    make_folder(folder)
    if exposed := exposure(folder):
        # What is stored here is later shown to an agent as the user's words, so nobody else may write it.
        done.failed = f"not used: {exposed}"
    return not exposed


def _is_context_changed(event: HookEvent) -> bool:
    """Return whether something may have left the context that the event is about."""
    return event.kind in ("before", "after", "inner_end") or event.source in ("compact", "clear")


def _answer_locked(
    event: HookEvent, data: bytes, files: HookStateFiles, options: Options, began: float, done: Done
) -> bytes:
    from compactd.storage.locks import Lock, take_lock

    while not isinstance(lock := take_lock(files.path(".lock")), Lock):
        if time.monotonic() - began > options.deadline_s * READING_SHARE:
            done.failed = "another hook of this session is still running"
            return b""
        time.sleep(LOCK_STEP_S)
    try:
        answer = _answer(event, data, files, options, began, done)
    finally:
        lock.release()
    return answer if isinstance(answer, bytes) else answer()


def _answer(
    event: HookEvent, data: bytes, files: HookStateFiles, options: Options, began: float, done: Done
) -> bytes | Callable[[], bytes]:
    from compactd.integrations.hooks.hook_state import forget_old, load, save
    from compactd.storage.hook_files import MODULE, forget_shown

    state = load(files)
    if event.kind == "module" and not event.transcript:
        event = replace(event, transcript=state.place.path)
    before = state.mark
    if event.agent == "claude-code" and _note_mark(state, event):
        save(files, state)
        if state.mark is None:
            # The compaction failed, so nobody will ask the process that read ahead.
            files.socket_path.unlink(missing_ok=True)
    if event.is_inner or event.kind in ("fork_end", "inner_end"):
        if event.kind == "fork_end" and state.mark is not None and not state.mark.is_disputed:
            from compactd.integrations.hooks.ahead import tell

            tell(files, state.mark.summary, options)
        return b""
    from compactd.integrations.hooks.mirror import Mirror

    if not state.session_id:
        state.session_id, state.folder = event.session_id, event.cwd
        forget_old(files.folder, time.time())
    mirror = Mirror(event.agent, files, state)
    _mirror(mirror, event, options, began, done)
    is_held_back = False
    answer: bytes | Callable[[], bytes] = b""
    if files.path(MODULE).exists() or event.kind == "module":
        from compactd.integrations.hooks import session_compact

        session_compact.note_event(mirror, files, event.kind, event.source)
        is_held_back = session_compact.is_held_back(files)
        if event.kind == "module" and not done.failed:
            answer = session_compact.answer_module(mirror, files, data, event.transcript, options, done)
            if done.event != "prepare":
                forget_shown(files.folder, files.stem, "")
    if event.kind == "prompt" and _is_typed(event):
        state.turns += 1
    text = ""
    if event.name and state.is_pending and event.source != "clear" and not is_held_back:
        state.attempts += 1
        mirror.write()
        save(files, state)
        if state.attempts <= MAX_ATTEMPTS:
            text = _restore(mirror, files, event, options, done)
            done.did = f"restored {len(text):,} characters" if text else "the agent's summary lost no facts"
        else:
            done.failed = "the facts that the agent's summary lost could not be determined in time"
        mirror.note_given_back(text)
    if not mirror.write():
        done.failed = done.failed or "the mirror's journal is damaged"
    save(files, state)
    # If both the plugin and `compactd install` are used, the event comes twice.
    is_again = before is not None and state.mark is not None and state.mark.repeats(before)
    done.begins_compaction = event.kind == "before" and event.agent == "claude-code" and not is_again
    if done.begins_compaction and options.steers:
        return _steer(mirror, files, done)
    return _with_context(event, text) if text else answer


def _steer(mirror: Mirror, files: HookStateFiles, done: Done) -> bytes:
    """Return what the summary has to contain, as plain text: Claude Code refuses JSON at this event."""
    from compactd.integrations.hooks.hook_state import read_messages_file
    from compactd.integrations.hooks.steering import steering_text

    state = mirror.state
    text = steering_text(read_messages_file(files.path(".stretch"), state.stretch_bytes), state.folder)
    if text:
        done.did = f"said what the summary must contain, in {len(text):,} characters"
    return f"{text}\n".encode("utf-8", "replace") if text else b""


def _note_mark(state: HookState, event: HookEvent) -> bool:
    """Record what the event says about a compaction that is not done yet. Return whether that changed
    `state`.
    """
    from compactd.integrations.hooks.compaction_mark import note

    before = (state.mark, state.inner)
    note(state, event, time.time())
    return (state.mark, state.inner) != before


def _is_typed(event: HookEvent) -> bool:
    """Return whether a person wrote the prompt. Claude Code also sends the event for prompts of its own, such
    as the report of a background task (2.1.330, run 2026-11).
    """
    if event.agent != "claude-code" or not event.prompt.lstrip().startswith(("<", "[", "Another ")):
        return True
    from compactd.formats.agents.claude_code import is_by_program

    return not is_by_program(event.prompt)


def _mirror(mirror: Mirror, event: HookEvent, options: Options, began: float, done: Done) -> None:
    """Store new messages of the transcript in the mirror, and what the event itself says about a
    compaction.
    """
    from compactd.integrations.hooks.transcripts import Transcript, TranscriptRefused

    until = began + options.deadline_s * READING_SHARE
    transcript: Transcript | None = None
    if event.transcript:
        try:
            transcript = Transcript(event.transcript, mirror.state.place)
        except FileNotFoundError:
            pass  # An agent may name the file before it writes it.
        except (OSError, TranscriptRefused) as error:
            done.failed = (
                str(error) if isinstance(error, TranscriptRefused) else f"transcript: {error.strerror}"
            )
    try:
        if transcript is not None:
            is_first = not mirror.state.is_caught_up
            mirror.catch_up(
                transcript, until, is_open=event.kind in ("before", "after"), is_over=event.kind == "end"
            )
            if is_first and event.kind != "after" and event.source != "compact":
                mirror.note_history()
        if event.kind == "start" and event.source == "clear":
            mirror.clear()
        if event.kind == "after" and not mirror.state.is_inner_compaction:
            mirror.note_compaction(event.summary)
        if event.kind == "start" and event.source == "compact":
            from compactd.integrations.hooks.compaction_mark import is_of_sub_agent, take_summary

            state = mirror.state
            if is_of_sub_agent(state, event, mirror.newest_role):
                state.mark, state.is_inner_compaction = None, True
                return
            is_auto = state.mark is not None and state.mark.trigger == "auto"
            mirror.note_start(take_summary(state, event, time.time()), is_auto=is_auto)
            if transcript is not None and event.agent != "claude-code":
                # Claude Code writes the record of the compaction after this event.
                _wait_for(mirror, transcript, options, began)
    finally:
        if transcript is not None:
            transcript.close()


def _wait_for(mirror: Mirror, transcript: Transcript, options: Options, began: float) -> None:
    """Wait until the transcript contains the summary of the compaction that the event reported, for at most
    `LAG_SHARE` of the deadline.
    """
    stop = time.monotonic() + options.deadline_s * LAG_SHARE
    while mirror.state.is_pending and not mirror.state.is_told and time.monotonic() < stop:
        if transcript.has_grown():
            mirror.catch_up(transcript, began + options.deadline_s * READING_SHARE, is_open=True)
        else:
            time.sleep(LAG_STEP_S)


def _restore(mirror: Mirror, files: HookStateFiles, event: HookEvent, options: Options, done: Done) -> str:
    from compactd.integrations.hooks.hook_state import read_messages_file, save

    state = mirror.state
    if event.agent == "claude-code" and state.attempts == 1:
        from compactd.integrations.hooks.ahead import ask

        reply = ask(files, state, options, options.deadline_s * AHEAD_SHARE)
        files.socket_path.unlink(missing_ok=True)
        if reply is not None:
            state.kept = reply.kept
            return reply.text
    # Starting OpenBLAS's thread pool (numpy 2) takes 40 ms and does not pay off here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from compactd.integrations.hooks.lost_facts import characters, find_lost, newest_messages, size_bytes

    def first(text: str) -> None:
        if text and not state.are_limits_given:
            done.instead.append(_with_context(event, text))
            state.are_limits_given = True
            save(files, state)

    lost = find_lost(
        newest_messages(
            read_messages_file(files.path(".gone"), state.gone_bytes),
            MAX_MIRRORED_TOKENS >> (state.attempts - 1),
        ),
        state.summary,
        state.stays,
        stayed=state.stayed,
        is_told=state.is_told,
        folder=state.folder,
        most=options.most_chars,
        count=size_bytes if event.agent == "codex" else characters,
        first=first,
    )
    state.kept = lost.kept
    return lost.text


def _with_context(event: HookEvent, text: str) -> bytes:
    import msgspec

    inner = {"hookEventName": event.name, "additionalContext": text}
    return msgspec.json.encode({"hookSpecificOutput": inner}) + b"\n"


def _stdin() -> bytes:
    """Return the bytes of stdin; empty if there are more than `MAX_EVENT_BYTES`. All are read in any case,
    because an agent may fail if its pipe breaks.
    """
    pieces: list[bytes] = []
    size = 0
    while data := os.read(0, 1 << 16):
        size += len(data)
        if size <= MAX_EVENT_BYTES:
            pieces.append(data)
    return b"".join(pieces) if size <= MAX_EVENT_BYTES else b""


def _end_at(deadline_s: float, agent: str, done: Done) -> Callable[[], object]:
    """Start a timer that ends the process after `deadline_s` seconds. Return a function that stops the timer.

    What `agent`'s hook could not finish in time is continued at the next event. `done` is then written to
    the log.
    """

    def stop() -> None:
        done.failed = "the hook was ended because its deadline passed"
        try:
            _write(_take_fallback(done))
            _log(agent, done, time.monotonic() - deadline_s)
        finally:
            os._exit(0)

    if sys.platform == "win32":
        import threading

        timer = threading.Timer(deadline_s, stop)
        timer.daemon = True
        timer.start()
        return timer.cancel
    import signal

    signal.signal(signal.SIGALRM, lambda number, frame: stop())
    signal.setitimer(signal.ITIMER_REAL, deadline_s)
    return lambda: signal.setitimer(signal.ITIMER_REAL, 0)


def _log(agent: str, done: Done, began: float) -> None:
    if not done.failed and not done.did:
        return
    from compactd.integrations.hooks.hook_log import HookLogLine, append_log

    append_log(
        os.environ,
        HookLogLine(
            at=time.time(),
            agent=agent[:32],
            event=done.event,
            session=done.session,
            ms=round(1000 * (time.monotonic() - began)),
            did=done.did,
            failed=done.failed[:300],
        ),
    )


def _place_of(error: BaseException) -> str:
    """Return where the error was raised. Its message is left out because it may contain text of
    the session.
    """
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "" if at is None else f"{at.tb_frame.f_code.co_filename.rpartition(os.sep)[2]}:{at.tb_lineno}"
