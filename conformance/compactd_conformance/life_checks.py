"""Checks of how a process starts and ends, of its error codes, and of what it knows about models."""

from __future__ import annotations

from compactd_conformance import shapes
from compactd_conformance.bench import BOTH, Bench, check, expect
from compactd_conformance.frames import read, request
from compactd_conformance.peer import Peer
from compactd_conformance.talk import KEEP, assistant, text, turns, user

TOO_LONG = "prompt is too long: 213462 tokens > 200000 maximum"
"""The error text of Anthropic's Messages API for a prompt that is too long (400, seen 2026-03)."""

LIMIT_BYTES = 64 << 20


@check(
    "initialize",
    law="Transport: LSP's life",
    says="The result of `initialize` has the protocol's version and its methods in "
    "`capabilities.experimental.compactd`. Clients may leave `initialize` out.",
    mend="Answer `initialize` at any time, and answer other requests without it (error -32002, "
    "ServerNotInitialized, is not used).",
    framings=BOTH,
)
def initialize(bench: Bench) -> None:
    """Send `initialize` after another request. Expect the protocol's version and methods."""
    peer = bench.fresh()
    peer.call("daemon/ping", {}, shapes.Nothing)
    params: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
    spoken = peer.call("initialize", params, shapes.Initialized).capabilities.experimental.compactd
    peer.notify("initialized", {})

    wanted = {"session/start", "session/append", "session/context", "session/compact", "agent/state"}
    expect(wanted <= set(spoken.methods), f"the methods {sorted(wanted)}", spoken.methods)
    expect(bool(spoken.protocol_version), "the protocol's version", spoken.protocol_version)


@check(
    "shutdown-and-exit",
    law="Transport: LSP's life",
    says="After `shutdown`, requests answer error -32600 (invalid request). At `exit`, the program ends "
    "with exit code 0 after `shutdown`, and otherwise with 1.",
    mend="Remember that `shutdown` was received, and choose the exit code by it.",
)
def shutdown(bench: Bench) -> None:
    """End one process with and one without `shutdown`. Expect the exit codes 0 and 1."""
    peer = bench.fresh()
    peer.answer(peer.ask("shutdown"))
    code = peer.error_answer(peer.ask("session/list")).code
    peer.notify("exit", {})
    clean = peer.wait_for_end()
    other = bench.fresh()
    other.call("daemon/ping", {}, shapes.Nothing)
    other.notify("exit", {})
    hasty = other.wait_for_end()

    expect(code == -32600, "error -32600 after shutdown", code)
    expect((clean, hasty) == (0, 1), "exit codes 0 and 1", (clean, hasty))


@check(
    "end-of-input",
    law="Transport: EOF on stdin",
    says="When its input ends, the program answers every request that it read, including one in a last "
    "line without a line end. It then exits with code 0.",
    mend="Answer all requests that were read, then exit.",
    framings=BOTH,
)
def end_of_input(bench: Bench) -> None:
    """Close the input after requests. Expect an answer to each, and exit code 0."""
    peer = bench.fresh()
    talk = bench.talk(*turns(6, 200), on=peer)
    ids = [talk.ask("session/compact", keep_recent=KEEP), talk.ask("session/context")]
    last = peer.frame(request("last", "daemon/ping"))
    peer.send_raw(last.rstrip(b"\n"))

    code = peer.stop()
    missing = [id for id in (*ids, "last") if len(peer.answers(id)) != 1]
    expect(code == 0, "exit code 0", code)
    expect(not missing, "one answer to each request", f"no answer to {missing}")


@check(
    "a-frame-above-the-limit",
    law="Transport: framing",
    says="A request larger than 64 MiB is answered with error 1009 (LimitExceeded) and the request's id, "
    "and is skipped. The next request is handled.",
    mend="Count the bytes of such a request without keeping them; look for the id in the first 256 bytes.",
)
def above_the_limit(bench: Bench) -> None:
    """Send a frame that is one byte too large. Expect error 1009 (limit exceeded), and an answer to the
    next frame."""
    peer = bench.fresh()
    head = b'{"jsonrpc":"2.0","id":"big","method":"daemon/ping","params":{"x":"'
    body = head + b"y" * (LIMIT_BYTES + 1 - len(head)) + b'"}}'
    peer.send(body)

    fault = peer.error_answer("big")
    expect(fault.code == 1009, "error 1009", f"{fault.code}: {fault.message}")
    peer.call("daemon/ping", {}, shapes.Nothing)


@check(
    "errors-of-sessions",
    law="Errors: 1001, 1010, -32602",
    says="A request to an unknown session answers error 1001 (SessionNotFound). So does one to a stored "
    "session that is not open, with `data.exists: true`. An unknown format answers error 1010 "
    "(FormatNotSupported). Two keep-recent budgets, or a budget of 0, answer error -32602 (InvalidParams).",
    mend="Use a different error code for each case in which a client can do something different.",
)
def errors_of_sessions(bench: Bench) -> None:
    """Send requests that are wrong in different ways. Expect the error code for each."""
    talk = bench.talk(*turns(3, 50))
    asked = {
        "an unknown session": (1001, bench.peer.refusal("session/context", {"session_id": "nobody"})),
        "an unknown format": (1010, talk.refusal("session/context", format="morse")),
        "two budgets": (-32602, talk.refusal("session/compact", keep_recent=9, keep_messages=2)),
        "a budget of 0": (-32602, talk.refusal("session/compact", keep_recent=0)),
        "a tool message that is a string": (
            -32602,
            talk.refusal("session/append", messages=[{"role": "tool", "content": "x"}]),
        ),
    }
    wrong = {what: fault.code for what, (code, fault) in asked.items() if fault.code != code}
    expect(not wrong, f"{ {what: code for what, (code, _) in asked.items()} }", wrong)
    talk.peer.result(talk.ask("session/close"), shapes.Nothing)
    fault = talk.refusal("session/context")
    exists = read(fault.data, shapes.Exists).exists
    expect(
        (fault.code, exists) == (1001, True),
        "error 1001 with data.exists: true after session/close",
        (fault.code, exists),
    )


@check(
    "a-folder-that-cannot-be-written",
    law="Errors: 1005",
    says="If the data folder cannot be written, `session/start` answers error 1005 (StorageFailed). With "
    "`persist: false`, the session starts.",
    mend="Refuse to start a session that cannot be stored, but allow one that is kept only in memory.",
)
def storage_failed(bench: Bench) -> None:
    """Start sessions with a data folder that cannot be created. Expect error 1005 (storage failed), and
    success with `persist: false`."""
    file = bench.home()
    file.write_text("mine")
    peer = bench.fresh(file / "home")

    fault = peer.refusal("session/start", {"session_id": "s"})
    started = peer.call("session/start", {"session_id": "s", "persist": False}, shapes.Started)
    expect(fault.code == 1005, "error 1005", f"{fault.code}: {fault.message}")
    expect(
        str(file) not in fault.message,
        "an error message without the path of the data folder",
        fault.message,
    )
    expect(not started.resumed, "a session that is kept in memory, with persist: false", started)


@check(
    "answers-have-their-fields",
    law="Methods",
    says="The result of each method has the fields that protocol.md lists.",
    mend="Compare the result with the table of the method in protocol.md.",
)
def fields(bench: Bench) -> None:
    """Call each method. Expect all required fields in its result."""
    talk = bench.talk(*turns(6, 200), system_prompt="Be brief.")
    talk.context()
    talk.state()
    talk.compact_or_fail(keep_recent=KEEP)
    talk.history()
    talk.search("went")
    talk.rewind("session/undo")
    talk.peer.result(talk.ask("turn/begin"), shapes.Begun)
    talk.peer.result(talk.ask("turn/end", messages=[assistant("So.")]), shapes.Appended)
    talk.peer.call("session/list", {}, shapes.Rows)
    talk.peer.call("models/lookup", {"model": "gpt-4o"}, shapes.Known)
    talk.peer.call("tokens/count", {"text": "one two"}, shapes.Counted)
    talk.peer.call("overflow/classify", {"status": 400, "message": TOO_LONG}, shapes.Class)


@check(
    "a-rate-limit-is-no-overflow",
    law="Never again: throttling taken for overflow",
    says="`overflow/classify` takes a response with status 429 for a rate limit, whatever its text says. "
    "If a provider's error says that the prompt is too long and names the limit, the result is an overflow "
    "with that limit. The digits `500` inside a larger number are not taken for a status.",
    mend="Check first for errors that are never an overflow, such as rate limits, then status codes, then "
    "the text.",
)
def rate_limit(bench: Bench) -> None:
    """Classify the errors of a rate limit and of an overflow. Expect each to be recognised, and the limit
    that the overflow names."""

    def of(**params: object) -> shapes.Class:
        return bench.peer.call("overflow/classify", params, shapes.Class)

    limited = of(status=429, message="Rate limit: 500000 tokens per minute, too many tokens")
    over = of(status=400, message=TOO_LONG, provider="anthropic")
    expect((limited.overflow, limited.kind) == (False, "rate_limit"), "a rate limit", limited)
    expect((over.overflow, over.limit) == (True, 200_000), "an overflow with the limit 200000", over)


@check(
    "a-model-nobody-knows",
    law="Methods: models/lookup",
    says="The window of an unknown model is 128000 with the confidence `guess`.",
    mend="Do not use the window of another model just because its name is similar.",
)
def unknown_model(bench: Bench) -> None:
    """Look up a model that does not exist. Expect a window of 128000 with the confidence `guess`."""
    known = bench.peer.call("models/lookup", {"model": "acme/unheard-of-9"}, shapes.Known)
    told = (known.context_window, known.confidence)
    expect(told == (128_000, "guess"), "a window of 128000 with the confidence guess", told)


@check(
    "many-bytes-at-once",
    law="Transport",
    says="A large message, and many small ones in one write, arrive completely and in order.",
    mend="Read and write in pieces: one read can return part of a message or several messages.",
    framings=BOTH,
)
def many_bytes(bench: Bench) -> None:
    """Send a large message, and many small ones in one write. Expect all of them complete and in order."""
    peer = bench.fresh()
    talk = bench.talk(on=peer)
    large = "größe 字😀 " * 40_000
    talk.append(user(large))
    peer.send(*(request(f"n{n}", "daemon/ping") for n in range(500)))
    ids = [talk.ask("session/append", messages=[user(f"{n} {text(5)}")]) for n in range(50)]
    peer.stop()

    entries = [peer.result(id, shapes.Appended).entry_ids[0] for id in ids]
    pings = sum(len(peer.answers(f"n{n}")) for n in range(500))
    expect(pings == 500, "500 answers, one to each of 500 pings", pings)
    expect(len(set(entries)) == 50, "50 entry ids, one for each appended message", len(set(entries)))


@check(
    "a-clients-settings-stay",
    law="Settings: initializationOptions",
    says="Settings from `initialize` still apply after a `workspace/didChangeConfiguration` that has no "
    "settings of compactd. A bad value does not affect the other settings. Bad values and unknown names "
    "are in `warnings`.",
    mend="Keep the settings from `initialize` and those from `workspace/didChangeConfiguration` as two "
    "layers; check each value separately.",
)
def settings_stay(bench: Bench) -> None:
    """Send good and bad settings in `initialize`, then change the configuration without naming compactd's
    settings. Expect that the good ones stay, and warnings about bad values and unknown names."""
    peer = bench.fresh()
    options = {"compaction": {"threshold_ratio": 9, "keep_messages": 3}}
    peer.call(
        "initialize",
        {"processId": None, "capabilities": {}, "initializationOptions": options},
        shapes.Initialized,
    )
    peer.notify("initialized", {})
    for settings in ({}, {"editor": {"tabSize": 4}}, {"keep_messages": 8}):
        peer.notify("workspace/didChangeConfiguration", {"settings": settings})
    started = peer.call("session/start", {"session_id": "s", "compaction": {"keeep": 1}}, shapes.Started)

    for name in ("threshold_ratio", "keeep"):
        told = [warning for warning in started.warnings if name in warning]
        expect(bool(told), f"a warning about {name}", started.warnings)
    kept = _setting(peer, "s", "keep_messages")
    expect(kept == 3, "keep_messages: 3, the value from initializationOptions", kept)


def _setting(peer: Peer, session_id: str, name: str, **params: object) -> object:
    """Call `session/configure` with these params, and return the value that the setting `name` then has."""
    params = {"session_id": session_id, **params}
    return peer.call("session/configure", params, shapes.Configured).settings[name].value


@check(
    "what-may-be-a-mistake-is-warned-of",
    law="Methods: session/start",
    says="An unknown model, a base_url that is not a URL, a parent that is not a session, a relative "
    "working_dir, and a usage report without a known field each cause an entry in `warnings`.",
    mend="Warn about each of these params, but do not refuse the request.",
)
def meant_otherwise(bench: Bench) -> None:
    """Send valid params that are probably mistakes. Expect a warning about each of them."""
    model, base_url, parent, folder = "claude-sonet-4-5", "nonsense", "no-such-session", "relative/place"
    given = {
        "model": {"provider": "antropic", "id": model, "base_url": base_url},
        "parent_session_id": parent,
        "working_dir": folder,
    }
    started = bench.peer.call("session/start", given, shapes.Started)
    silent = [one for one in (model, base_url, parent, folder) if not any(one in w for w in started.warnings)]
    expect(not silent, "a warning about each of the doubtful params", f"no warning about {', '.join(silent)}")
    params = {"session_id": started.session_id, "messages": [], "usage": {"foo": 1}}
    warnings = bench.peer.call("turn/end", params, shapes.Reported).warnings
    expect(bool(warnings), "a warning about a usage report without a known field", warnings)


@check(
    "a-setting-can-be-unset",
    law="Methods: session/configure",
    says="`session/configure` with `unset` removes a setting of the session, so that the value from the "
    "next lower layer (such as a settings file) applies again. A setting of null changes nothing.",
    mend="Remove the setting from the layers that belong to the session.",
)
def unset(bench: Bench) -> None:
    """Set a setting, set it to null, and unset it. Expect that null changes nothing, and that `unset`
    restores the value from before the first step."""
    talk = bench.talk()
    before = _setting(talk.peer, talk.id, "keep_messages")
    kept = [
        _setting(talk.peer, talk.id, "keep_messages", compaction={"keep_messages": value})
        for value in (7, None)
    ]
    after = _setting(talk.peer, talk.id, "keep_messages", unset=["keep_messages"])
    expect(kept == [7, 7], "the value 7, and still 7 after null", kept)
    expect(after == before, f"the earlier value {before} after unset", after)


CHECKS = (
    initialize,
    shutdown,
    end_of_input,
    above_the_limit,
    errors_of_sessions,
    fields,
    storage_failed,
    rate_limit,
    unknown_model,
    many_bytes,
    settings_stay,
    meant_otherwise,
    unset,
)
"""The checks in the order in which they run."""
