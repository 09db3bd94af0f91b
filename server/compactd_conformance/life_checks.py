"""Checks of a process from start to end, of errors and their codes, and of facts about models."""

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
    says="`initialize` answers with `capabilities.experimental.compactd`: the protocol's version and "
    "its methods. It is optional, and scripts may omit it.",
    mend="Answer it at any time; never require it (-32002 is not used).",
    framings=BOTH,
)
def initialize(bench: Bench) -> None:
    """Send `initialize` after another request."""
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
    says="After `shutdown`, requests answer -32600. `exit` ends the program with code 0 after "
    "`shutdown`, otherwise with 1.",
    mend="Remember that `shutdown` was received.",
)
def shutdown(bench: Bench) -> None:
    """End one process with and one without `shutdown`."""
    peer = bench.fresh()
    peer.answer(peer.ask("shutdown"))
    code = peer.refused(peer.ask("session/list")).code
    peer.notify("exit", {})
    clean = peer.wait_for_end()
    other = bench.fresh()
    other.call("daemon/ping", {}, shapes.Nothing)
    other.notify("exit", {})
    hasty = other.wait_for_end()

    expect(code == -32600, "-32600 after shutdown", code)
    expect((clean, hasty) == (0, 1), "exit codes 0 and 1", (clean, hasty))


@check(
    "end-of-input",
    law="Transport: EOF on stdin",
    says="At the end of the input, everything that was read is answered, including a last line without "
    "a line end. The exit code is 0.",
    mend="Finish what was read, then exit.",
    framings=BOTH,
)
def end_of_input(bench: Bench) -> None:
    """Close the input after requests, and count the answers."""
    peer = bench.fresh()
    talk = bench.talk(*turns(6, 200), on=peer)
    ids = [talk.ask("session/compact", keep_recent=KEEP), talk.ask("session/context")]
    last = peer.framed(request("last", "daemon/ping"))
    peer.send_raw(last.rstrip(b"\n"))

    code = peer.stop()
    missing = [id for id in (*ids, "last") if len(peer.answers(id)) != 1]
    expect(code == 0, "exit code 0", code)
    expect(not missing, "one answer to each request", f"not to {missing}")


@check(
    "a-frame-above-the-limit",
    law="Transport: framing",
    says="A frame larger than 64 MiB answers 1009 with its id and is skipped. The next frame is read.",
    mend="Count the bytes without keeping them; look for the id in the first 256 bytes.",
)
def above_the_limit(bench: Bench) -> None:
    """Send a frame that is one byte too large."""
    peer = bench.fresh()
    head = b'{"jsonrpc":"2.0","id":"big","method":"daemon/ping","params":{"x":"'
    body = head + b"y" * (LIMIT_BYTES + 1 - len(head)) + b'"}}'
    peer.send(body)

    fault = peer.refused("big")
    expect(fault.code == 1009, "1009", f"{fault.code}: {fault.message}")
    peer.call("daemon/ping", {}, shapes.Nothing)


@check(
    "errors-of-sessions",
    law="Errors: 1001, 1010, -32602",
    says="An unknown session answers 1001; so does a stored session that is not open, with "
    "`data.exists`. An unknown format answers 1010. Two budgets, or a budget of 0, answer -32602.",
    mend="Choose the code by what a client can do about the error.",
)
def errors_of_sessions(bench: Bench) -> None:
    """Send requests with different errors, and compare the codes."""
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
    expect((fault.code, exists) == (1001, True), "1001 with data.exists after close", (fault.code, exists))


@check(
    "a-folder-that-cannot-be-written",
    law="Errors: 1005",
    says="If sessions cannot be stored, starting one answers 1005. With `persist: false`, it works.",
    mend="Refuse what cannot be made durable; a session in memory needs no disk.",
)
def storage_failed(bench: Bench) -> None:
    """Start sessions with a data folder that cannot be created."""
    file = bench.home()
    file.write_text("mine")
    peer = bench.fresh(file / "home")

    fault = peer.refusal("session/start", {"session_id": "s"})
    started = peer.call("session/start", {"session_id": "s", "persist": False}, shapes.Started)
    expect(fault.code == 1005, "1005", f"{fault.code}: {fault.message}")
    expect(str(file) not in fault.message, "no path of the program's own in the message", fault.message)
    expect(not started.resumed, "a session in memory", started)


@check(
    "answers-have-their-fields",
    law="Methods",
    says="Each method's result has the fields of protocol.md.",
    mend="Compare the result with the table of the method.",
)
def fields(bench: Bench) -> None:
    """Call each method, and decode the required fields of its result."""
    talk = bench.talk(*turns(6, 200), system_prompt="Be brief.")
    talk.context()
    talk.state()
    talk.compacted(keep_recent=KEEP)
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
    says="Status 429 is a rate limit, whatever its text says. An overflow is recognised with its "
    "limit. `500` inside a number means nothing.",
    mend="Check exclusions first, then codes, then the text.",
)
def rate_limit(bench: Bench) -> None:
    """Classify a rate limit and an overflow."""

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
    mend="Never match a name by chance.",
)
def unknown_model(bench: Bench) -> None:
    """Look up a model that does not exist."""
    known = bench.peer.call("models/lookup", {"model": "acme/unheard-of-9"}, shapes.Known)
    told = (known.context_window, known.confidence)
    expect(told == (128_000, "guess"), "128000, guess", told)


@check(
    "many-bytes-at-once",
    law="Transport",
    says="A large message, and many small ones in one write, arrive completely and in order.",
    mend="Read and write in pieces; never assume that one read is one message.",
    framings=BOTH,
)
def many_bytes(bench: Bench) -> None:
    """Send a large message and many small ones."""
    peer = bench.fresh()
    talk = bench.talk(on=peer)
    large = "größe 字😀 " * 40_000
    talk.append(user(large))
    peer.send(*(request(f"n{n}", "daemon/ping") for n in range(500)))
    ids = [talk.ask("session/append", messages=[user(f"{n} {text(5)}")]) for n in range(50)]
    peer.stop()

    entries = [peer.result(id, shapes.Appended).entry_ids[0] for id in ids]
    pings = sum(len(peer.answers(f"n{n}")) for n in range(500))
    expect(pings == 500, "500 answers to 500 pings", pings)
    expect(len(set(entries)) == 50, "50 entries", len(set(entries)))


@check(
    "a-clients-settings-stay",
    law="Settings: initializationOptions",
    says="A changed configuration without compactd's settings keeps the settings from `initialize`. A "
    "bad value does not affect the others. Bad values and unknown names are in `warnings`.",
    mend="Keep the options and the changed configuration as two layers; check each value separately.",
)
def settings_stay(bench: Bench) -> None:
    """Send settings in `initialize` and change the configuration."""
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
    expect(kept == 3, "keep_messages: 3, from initializationOptions", kept)


def _setting(peer: Peer, session_id: str, name: str, **params: object) -> object:
    """Call `session/configure` with these params, and return the value that the setting `name` then has."""
    params = {"session_id": session_id, **params}
    return peer.call("session/configure", params, shapes.Configured).settings[name].value


@check(
    "what-may-be-a-mistake-is-warned-of",
    law="Methods: session/start",
    says="An unknown model, a base_url that is not a URL, a parent that is not a session, a relative "
    "working_dir, and a usage report without a known field cause `warnings`.",
    mend="Warn about each; refuse none.",
)
def meant_otherwise(bench: Bench) -> None:
    """Start a session with params that are probably mistakes."""
    model, base_url, parent, folder = "claude-sonet-4-5", "nonsense", "no-such-session", "relative/place"
    given = {
        "model": {"provider": "antropic", "id": model, "base_url": base_url},
        "parent_session_id": parent,
        "working_dir": folder,
    }
    started = bench.peer.call("session/start", given, shapes.Started)
    silent = [one for one in (model, base_url, parent, folder) if not any(one in w for w in started.warnings)]
    expect(not silent, "a warning about each", f"none about {', '.join(silent)}")
    params = {"session_id": started.session_id, "messages": [], "usage": {"foo": 1}}
    warnings = bench.peer.call("turn/end", params, shapes.Reported).warnings
    expect(bool(warnings), "a warning about a usage report that says nothing", warnings)


@check(
    "a-setting-can-be-unset",
    law="Methods: session/configure",
    says="`unset` removes a setting of the session, so that the next lower layer applies again. Null "
    "changes nothing.",
    mend="Remove the setting from the session's own layers.",
)
def unset(bench: Bench) -> None:
    """Set a setting, set it to null, and unset it."""
    talk = bench.talk()
    before = _setting(talk.peer, talk.id, "keep_messages")
    kept = [
        _setting(talk.peer, talk.id, "keep_messages", compaction={"keep_messages": value})
        for value in (7, None)
    ]
    after = _setting(talk.peer, talk.id, "keep_messages", unset=["keep_messages"])
    expect(kept == [7, 7], "7, and 7 after null", kept)
    expect(after == before, f"{before} after unset", after)


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
