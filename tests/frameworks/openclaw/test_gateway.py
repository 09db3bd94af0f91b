"""OpenClaw's gateway with the plugin, against the provider on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from compactd.client import Client
from tests.frameworks.environment import ROOT
from tests.frameworks.node.driving import node
from tests.frameworks.openclaw.building import HERE
from tests.frameworks.openclaw.gateway import WINDOWS, Gateway, Json, packages
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import WHOLE, Provider
from tests.frameworks.support.reading import items_of
from tests.frameworks.support.talk import INJECTED, Talk, talk

SMALL = talk(lots=2, parts=7)
BIG = (
    "\n".join(f"{at}: all is as it was before, in every respect" for at in range(800)) + "\nerror: jam at 7\n"
)


def provider_of(gateway: Gateway, model: str = "loopback-1", script: Talk = WHOLE, **more: Any) -> Provider:
    return Provider(script, window=WINDOWS[model], port=gateway.provider_port, **more)


def converse(gateway: Gateway, provider: Provider, session: str, model: str, first: int = 0) -> None:
    """Give the agent every request from `first` on."""
    for request in provider.asks(first):
        gateway.ask(request, session, model=model)


def client_of(gateway: Gateway) -> Client:
    """Return a client that reads what the gateway's daemon stored."""
    return Client(env={**os.environ, "COMPACTD_HOME": str(gateway.folder / "data")})


def state_of(gateway: Gateway, session: str) -> Json:
    """Return the state of the daemon's session, as another program sees it."""
    name = f"openclaw:{gateway.session_id(session)}"
    with client_of(gateway) as client:
        client.session_start(session_id=name, read_only=True)
        state: Json = client.call("agent/state", {"session_id": name})
    return state


def stored(gateway: Gateway, session: str) -> list[Json]:
    """Return the messages of the daemon's session."""
    name = f"openclaw:{gateway.session_id(session)}"
    with client_of(gateway) as client:
        client.session_start(session_id=name, read_only=True)
        entries = client.call("session/history", {"session_id": name})["entries"]
    return [entry["message"] for entry in entries if "message" in entry]


def outputs_of(messages: list[Json]) -> list[str]:
    return [
        block["content"]
        for message in messages
        for block in (message["content"] if isinstance(message["content"], list) else [])
        if block["type"] == "tool_result"
    ]


def reports_of(messages: list[Json]) -> list[str]:
    return [output for output in outputs_of(messages) if str(output).startswith("Report")]


# --- 40 tool turns ------------------------------------------------------------------------------------------


def test_forty_tool_turns_in_a_small_window_are_never_refused(gateway: Gateway) -> None:
    with provider_of(gateway, "small", recalls=2) as provider:
        converse(gateway, provider, "forty", "small")

    assert broken(provider) == []
    assert (provider.totals.tasks, provider.totals.turns, provider.totals.recalls) == (5, 40, 2)
    # The daemon's session has everything, word for word and once.
    messages = stored(gateway, "forty")
    assert reports_of(messages) == [use.output for use in provider.talk.uses]
    assert [message["role"] for message in messages].count("user") == 5
    state = state_of(gateway, "forty")
    assert state["compaction"]["count"] > 0
    assert state["model"] == "loop/small"
    assert state["token_usage"]["context_window"] == WINDOWS["small"]
    # The bill is the provider's.
    assert state["token_usage"]["prompt_tokens"] == provider.totals.input_tokens


def test_with_openclaws_own_check_a_long_turn_is_never_refused_either(checking: Gateway) -> None:
    """A turn may outgrow the window by itself: OpenClaw then asks for a compaction, and the turn goes on."""
    with provider_of(checking, "tight", talk(lots=1, parts=20)) as provider:
        converse(checking, provider, "long", "tight")

    assert broken(provider) == []
    assert (provider.totals.tasks, provider.totals.turns) == (1, 20)
    assert reports_of(stored(checking, "long")) == [use.output for use in provider.talk.uses]
    assert state_of(checking, "long")["compaction"]["count"] > 0


def test_a_request_that_was_too_large_is_made_again_smaller(gateway: Gateway) -> None:
    with provider_of(gateway, "tight", talk(lots=1, parts=20)) as provider:
        converse(gateway, provider, "refused", "tight")

    assert provider.totals.rejections > 0
    assert [fault for fault in broken(provider) if "refused" not in fault] == []
    assert (provider.totals.tasks, provider.totals.turns) == (1, 20)
    for at, seen in enumerate(provider.requests):
        if not seen.accepted:
            assert provider.requests[at + 1].tokens < seen.tokens / 2
    assert reports_of(stored(gateway, "refused")) == [use.output for use in provider.talk.uses]


def test_a_reply_that_is_streamed(gateway: Gateway) -> None:
    with provider_of(gateway, "small", talk(lots=1, parts=2)) as provider:
        reply = gateway.ask(provider.ask(0), "streamed", model="small", stream=True)
    assert provider.talk.lots[0].done in reply
    assert broken(provider) == []


def test_with_room_for_all_of_it_the_provider_receives_what_it_would_without_compactd(
    gateway: Gateway, alone: Gateway
) -> None:
    sent = []
    for each in (gateway, alone):
        with provider_of(each, script=SMALL) as provider:
            converse(each, provider, "room", "loopback-1")
            bodies = [seen.body for seen in provider.requests]
        sent.append([comparable(body) for body in bodies])
    assert sent[0] == sent[1]


def comparable(body: Json) -> Json:
    """Return a request without what differs between two runs: times, ids, the tool of the plugin."""
    tools = [tool for tool in body["tools"] if tool["function"]["name"] != "recall"]
    text = json.dumps({**body, "tools": tools, "prompt_cache_key": None})
    text = re.sub(r"\[\w{3} \d{4}-\d\d-\d\d \d\d:\d\d \w+\]", "[TIME]", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", text)
    text = re.sub(r"/[^ \"\\]*/(?:compactd|alone)\d*/", "/FOLDER/", text)
    text = text.replace("\\n- recall: ", "\\n- recall").replace(f"\\n- recall{''}", "\\n- recall")
    done: Json = json.loads(re.sub(r"\\n- recall[^\\]*", "", text))
    return done


# --- the daemon fails, and processes end --------------------------------------------------------------------


def test_a_daemon_that_is_killed_between_any_two_steps_loses_nothing(gateway: Gateway) -> None:
    plain = gateway.use_tool

    def use(name: str, given: Json, session: str) -> str:
        gateway.kill_daemons()
        return plain(name, given, session)

    gateway.use_tool = use
    try:
        with provider_of(gateway, "tight", talk(lots=3, parts=5)) as provider:
            converse(gateway, provider, "killed", "tight")
    finally:
        gateway.use_tool = plain

    assert [fault for fault in broken(provider) if "refused" not in fault] == []
    assert (provider.totals.tasks, provider.totals.turns) == (3, 15)
    assert reports_of(stored(gateway, "killed")) == [use.output for use in provider.talk.uses]
    assert "CompactdWarning" not in gateway.log


def test_without_a_daemon_openclaw_compacts_by_itself(daemonless: Gateway) -> None:
    with provider_of(daemonless, "small") as provider:
        converse(daemonless, provider, "one", "small")

    assert provider.totals.tasks == 5
    assert provider.totals.summaries > 0
    assert daemonless.log.count("CompactdWarning") == 1
    assert "compactd: /no/such/compactd was not found." in daemonless.log
    assert "quarantin" not in daemonless.log


def test_another_process_goes_on_with_the_conversation(gateway: Gateway) -> None:
    with provider_of(gateway, "small", SMALL) as provider:
        gateway.ask(provider.ask(0), "again", model="small")
        gateway.stop()
        # It ended its daemon, and the turn is in the session.
        done = [use.output for turn in provider.talk.lots[0].turns for use in turn]
        assert reports_of(stored(gateway, "again")) == done
        gateway.start()
        converse(gateway, provider, "again", "small", first=1)

    assert broken(provider) == []
    assert provider.totals.tasks == 2
    messages = stored(gateway, "again")
    assert reports_of(messages) == [use.output for use in provider.talk.uses]
    assert state_of(gateway, "again")["token_usage"]["prompt_tokens"] == provider.totals.input_tokens


def test_several_conversations_at_once(gateway: Gateway) -> None:
    with provider_of(gateway, script=talk(lots=1, parts=1)) as provider, ThreadPoolExecutor(6) as threads:
        text = provider.ask(0)
        replies = list(threads.map(lambda at: gateway.ask(text, f"at-once-{at}"), range(6)))
    assert all(replies)
    with client_of(gateway) as client:
        listed = {each.session_id for each in client.session_list().sessions}
    assert len([name for name in listed if name.startswith("openclaw:")]) >= 6
    assert len(gateway.daemons()) == 1


# --- compactions that a person asks for, the past, and shorter outputs --------------------------------------


def test_a_person_may_ask_for_a_compaction(gateway: Gateway) -> None:
    with provider_of(gateway, script=SMALL) as provider:
        gateway.ask(provider.ask(0), "asked", model="loopback-1")
        before = provider.requests[-1].tokens
        gateway.run("sessions", "compact", "agent:main:asked")
        gateway.ask(provider.ask(1), "asked", model="loopback-1")

    assert provider.totals.summaries == 0
    first = next(seen for seen in provider.requests if provider.talk.requests[1] in json.dumps(seen.body))
    assert first.tokens < before
    assert "[Conversation summary" in json.dumps(first.body)
    assert broken(provider) == []
    assert state_of(gateway, "asked")["compaction"]["count"] == 1


def test_words_of_tools_never_become_the_users(gateway: Gateway) -> None:
    with provider_of(gateway, "small", talk(lots=2, parts=12), recalls=3) as provider:
        converse(gateway, provider, "authors", "small")

    assert [fault for fault in broken(provider) if "refused" not in fault] == []
    assert len(gateway.daemons()) == 1
    looked_up = [
        text
        for seen in provider.requests
        for item in items_of(seen.body)
        for _, text in item.results
        if text.startswith("Words said earlier")
    ]
    assert any(fact in text for text in looked_up for fact in provider.talk.facts.values())
    for line in (line for text in looked_up for line in text.splitlines() if INJECTED[6:] in line):
        assert line.startswith("(tool) ")
    users = [message for message in stored(gateway, "authors") if message["role"] == "user"]
    assert not any(INJECTED in json.dumps(message) for message in users)


def test_tool_outputs_may_be_shorter(checking: Gateway) -> None:
    plain = checking.use_tool
    checking.use_tool = lambda name, given, session: f"Report {given['number']}\n{BIG}"
    try:
        with provider_of(checking, script=talk(lots=1, parts=2)) as provider:
            checking.ask(provider.ask(0), "shorter")
    finally:
        checking.use_tool = plain
    results = [
        text for item in items_of(provider.requests[-1].body) for _, text in item.results if "Report" in text
    ]
    assert len(results) == 2
    assert all("error: jam at 7" in text and len(text) < len(BIG) / 4 for text in results)
    assert state_of(checking, "shorter")["reductions"]["count"] == 2


def test_the_interface_is_the_hosts(tmp_path: Path) -> None:
    place = packages()
    assert place is not None
    (tmp_path / "node_modules").symlink_to(place / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    text = (HERE / "types.ts").read_text().replace("PLUGIN", str(ROOT / "integrations" / "openclaw"))
    (tmp_path / "types.ts").write_text(text)
    compiler = place / "node_modules" / "typescript" / "bin" / "tsc"
    options = (
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--types",
        "node",
        "--typeRoots",
        "node_modules/@types",
    )
    target = ("--module", "nodenext", "--target", "es2022", "--lib", "es2024")
    done = subprocess.run(
        [node(), str(compiler), *options, *target, "types.ts"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == ""
    assert done.returncode == 0
