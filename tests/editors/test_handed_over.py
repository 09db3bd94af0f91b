"""Real agents go on with the sessions that `compactd handoff` and `compactd resume` write for them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compactd.core.authors.authors import USER, stretches
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.detect import read
from compactd.formats.files.session_file import SessionFile
from tests.editors import claude
from tests.editors.agents import PATIENCE_S, Json, environment
from tests.editors.codex.driven import Codex
from tests.editors.codex.driven import Model as CodexModel
from tests.editors.gemini.driven import Gemini
from tests.editors.gemini.driven import Model as GeminiModel
from tests.editors.opencode.driven import program, settle
from tests.editors.pi.driven import Pi
from tests.support import session_files
from tests.support.loopback import Answer, Loopback

WITH_CLAUDE = (pytest.mark.agent,)
WITHOUT_CLAUDE = (pytest.mark.agent, pytest.mark.editor)
"""Claude Code is not among what `make test-editors` installs."""

AGENTS = ("claude-code", "codex", "gemini-cli", "opencode", "pi")
EARLY = "Never touch bank.toml."
LATE = "Now check page 14."
FOREIGN = "Always use PORT=6666."
"""The words of a sub-agent."""
ASKED = "Go on with page 15."


def playing(agent: str, *values: str) -> Any:
    """Return the values of a test in which `agent` runs."""
    return pytest.param(*values, marks=WITH_CLAUDE if agent == "claude-code" else WITHOUT_CLAUDE)


def write_source(home: Path, work: Path, agent: str) -> Path:
    """Write a session of `agent` that worked in `work`."""
    records = [session_files.asked(EARLY)]
    for number in range(1, 15):
        call = session_files.used(f"t{number}", "Read", file_path=f"/pages/{number}.md")
        thought = {"type": "thinking", "thinking": "I read it.", "signature": "c2ln"}
        records += [
            session_files.asked(f"Now check page {number}. {session_files.filler(60)}"),
            session_files.answered(2 * number, thought, call),
            session_files.got(f"t{number}", f"Page {number}: {session_files.filler(60)}"),
            session_files.answered(2 * number + 1, session_files.text(f"Page {number} is right.")),
        ]
    stopped = session_files.used("t0", "Read", file_path="/stopped.md")
    records[-4:-4] = [session_files.asked("Read one more."), session_files.answered(90, stopped)]
    records.insert(-4, session_files.asked(f"<task-notification>\n{FOREIGN}\n</task-notification>"))
    first = session_files.claude_code(home / "first.jsonl", records)
    text = first.read_text().replace("/home/someone/ledger", str(work))
    # OpenCode resumes a session with the model that the session names.
    first.write_text(text.replace(session_files.MODEL, "mock/mock-1") if agent == "opencode" else text)
    source = home / "source"
    compactd(home, work, "convert", first, source, "--to", agent)
    return source


def run_compactd(
    home: Path, work: Path, *arguments: object, env: Mapping[str, str] = {}
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["compactd", *map(str, arguments)], cwd=work,
        env={**environment(home, {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}), **env},
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip


def compactd(home: Path, work: Path, *arguments: object, env: Mapping[str, str] = {}) -> str:
    done = run_compactd(home, work, *arguments, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


Written = Callable[..., Json]


def in_claude_code(home: Path, write: Written) -> str:
    with Loopback(reply=claude.answers) as server:
        agent = claude.Claude(home, server)
        written = write(home, agent.work)
        agent.go_on(written["session_id"], ASKED)
        return json.dumps(claude.newest_messages(server, ASKED), ensure_ascii=False)


def in_codex(home: Path, write: Written) -> str:
    model = CodexModel()
    with model.server:
        codex = Codex(home, model, trusts=False)
        config = codex.folder / "config.toml"
        # The window leaves room for the session.
        config.write_text(config.read_text().replace("60000", "200000").replace("11500", "150000"))
        written = write(home, codex.work)
        codex.go_on(written["session_id"], ASKED)
    return json.dumps(model.turns[-1].body["input"], ensure_ascii=False)


def in_gemini_cli(home: Path, write: Written) -> str:
    model = GeminiModel()
    with model.server:
        gemini = Gemini(home, model)
        gemini.compress_no_more()
        written = write(home, gemini.work)
        gemini.go_on(written["session_id"], ASKED)
    return json.dumps(model.turns[-1].body["contents"], ensure_ascii=False)


def in_opencode(home: Path, write: Written) -> str:
    home.mkdir()
    with Loopback(reply=lambda _: Answer(text="Noted.")) as server:
        env = settle(home, server)
        work = home / "work"
        (work / "opencode.json").write_text((work / "opencode.json").read_text().replace("20000", "200000"))
        written = write(home, work)
        for command in (
            ("import", written["path"]),
            # No --model: the session names one.
            ("run", "--session", written["session_id"], ASKED),
        ):
            done = subprocess.run(
                [program(), *command], cwd=work, env=env, capture_output=True, text=True, timeout=PATIENCE_S
            )
            assert done.returncode == 0, done.stdout + done.stderr
        bodies = [seen.body["messages"] for seen in server.requests if ASKED in json.dumps(seen.body)]
    return json.dumps(bodies[-1], ensure_ascii=False)


def in_pi(home: Path, write: Written) -> str:
    (home / "work").mkdir(parents=True)
    (home / "agent").mkdir()
    written = write(home, home / "work", env={"PI_CODING_AGENT_DIR": str(home / "agent")})
    with (
        Loopback(reply=lambda _: Answer(text="Noted.")) as server,
        Pi(home, server, args=("--session", written["path"])) as pi,
    ):
        pi.ask(ASKED)
        bodies = [seen.body["messages"] for seen in server.requests if ASKED in json.dumps(seen.body)]
    return json.dumps(bodies[-1], ensure_ascii=False)


CONTINUE: Mapping[str, Callable[[Path, Written], str]] = {
    "claude-code": in_claude_code,
    "codex": in_codex,
    "gemini-cli": in_gemini_cli,
    "opencode": in_opencode,
    "pi": in_pi,
}


def calls_and_results(value: object) -> Iterator[tuple[bool, str]]:
    """Yield (whether it is a call, id) of each tool call and result in a request's messages, in order."""
    match value:
        case list():
            for one in value:
                yield from calls_and_results(one)
        case {"type": "tool_use", "id": str(id)} | {"functionCall": {"id": str(id)}}:
            yield True, id
        case {"type": "function_call" | "custom_tool_call", "call_id": str(id)}:
            yield True, id
        case (
            {"type": "tool_result", "tool_use_id": str(id)}
            | {"type": "function_call_output" | "custom_tool_call_output", "call_id": str(id)}
            | {"role": "tool", "tool_call_id": str(id)}
            | {"functionResponse": {"id": str(id)}}
        ):
            yield False, id
        case {"tool_calls": list(calls)}:
            yield from ((True, call["id"]) for call in calls)
        case dict():
            for one in value.values():
                yield from calls_and_results(one)
        case _:
            pass


def check(said: str) -> None:
    """Check that a request contains the summary or the oldest words, the newest turn and the new prompt, in
    this order, and that each tool call is followed by its result, and there is no other result.
    """
    places = [said.find(text) for text in (EARLY, LATE, "Page 14 is right.", ASKED)]
    assert -1 not in places, (places, said)
    assert places == sorted(places)
    found = list(calls_and_results(json.loads(said)))
    calls = [id for is_call, id in found if is_call]
    assert sorted(calls) == sorted(id for is_call, id in found if not is_call)
    assert calls
    assert len(set(calls)) == len(calls)
    assert all(found.index((True, id)) < found.index((False, id)) for id in calls)


@pytest.mark.parametrize(("source", "target"), [playing(b, a, b) for a in AGENTS for b in AGENTS if a != b])
def test_the_other_agent_continues_a_compacted_session(tmp_path: Path, source: str, target: str) -> None:
    def write(home: Path, work: Path, *, env: Mapping[str, str] = {}) -> Json:
        file = write_source(home, work, source)
        options = ("--from", source, "--to", target, "--target", "2k", "--json")
        made: Json = json.loads(compactd(home, work, "handoff", file, *options, env=env))
        assert made["compacted"]
        return made["written"]

    check(CONTINUE[target](tmp_path / "home", write))


@pytest.mark.parametrize("target", [playing(one, one) for one in AGENTS])
def test_the_other_agent_continues_a_session_word_for_word(tmp_path: Path, target: str) -> None:
    source = "codex" if target == "claude-code" else "claude-code"

    def write(home: Path, work: Path, *, env: Mapping[str, str] = {}) -> Json:
        file = write_source(home, work, source)
        options = ("--from", source, "--to", target, "--window", "200k", "--json")
        made: Json = json.loads(compactd(home, work, "handoff", file, *options, env=env))
        assert not made["compacted"]
        return made["written"]

    said = CONTINUE[target](tmp_path / "home", write)

    check(said)
    assert all(f"Page {number} is right." in said for number in range(1, 15))
    assert "<task-notification>" in said[: said.find(FOREIGN)][-40:]


@pytest.mark.parametrize("agent", [playing(one, one) for one in AGENTS])
def test_an_agent_resumes_its_own_session_compacted(tmp_path: Path, agent: str) -> None:
    def write(home: Path, work: Path, *, env: Mapping[str, str] = {}) -> Json:
        file = write_source(home, work, agent)
        made: Json = json.loads(
            compactd(home, work, "resume", agent, file, "--target", "2k", "--json", env=env)
        )
        return made["written"]

    check(CONTINUE[agent](tmp_path / "home", write))


# --- sessions that the real agents wrote --------------------------------------------------------------


def by_claude_code(home: Path) -> tuple[Path, dict[str, str]]:
    with Loopback(reply=claude.answers) as server:
        agent = claude.Claude(home, server)
        agent.ask(EARLY)
    return agent.work, {}


def by_codex(home: Path) -> tuple[Path, dict[str, str]]:
    model = CodexModel()
    with model.server:
        codex = Codex(home, model, trusts=False)
        codex.ask(EARLY)
    return codex.work, {}


def by_gemini_cli(home: Path) -> tuple[Path, dict[str, str]]:
    model = GeminiModel()
    with model.server:
        gemini = Gemini(home, model)
        gemini.compress_no_more()
        gemini.ask(EARLY)
    return gemini.work, {}


def by_pi(home: Path) -> tuple[Path, dict[str, str]]:
    home.mkdir()
    sessions = home / "agent" / "sessions" / f"--{str(home / 'work')[1:].replace('/', '-')}--"
    with (
        Loopback(reply=lambda _: Answer(text="Noted.")) as server,
        Pi(home, server, args=("--session-dir", str(sessions))) as pi,
    ):
        pi.ask(EARLY)
    return home / "work", {"PI_CODING_AGENT_DIR": str(home / "agent")}


WRITE: Mapping[str, Callable[[Path], tuple[Path, dict[str, str]]]] = {
    "claude-code": by_claude_code,
    "codex": by_codex,
    "gemini-cli": by_gemini_cli,
    "pi": by_pi,
}
"""OpenCode keeps its sessions in a database: see `test_a_session_that_opencode_exported_is_handed_over`."""


@pytest.mark.parametrize("source", [playing(one, one) for one in WRITE])
def test_a_session_that_a_real_agent_wrote_is_found_and_handed_over(tmp_path: Path, source: str) -> None:
    home = tmp_path / "home"
    work, env = WRITE[source](home)

    options = ("--from", source, "--to", "opencode", "--model", "claude-haiku-4-5", "--json")
    made = json.loads(compactd(home, work, "handoff", *options, env=env))

    assert made["warnings"] == []
    file = read(Path(made["written"]["path"]).read_bytes())
    check_moved(file, work)
    before = {path: path.read_bytes() for path in home.rglob("*.jsonl")}
    done = run_compactd(home, work, "resume", source, env=env)
    assert done.returncode == 3, done
    assert "No compaction needed" in done.stdout
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.agent
@pytest.mark.parametrize("source", [one for one in WRITE if one != "claude-code"])
def test_claude_code_continues_what_a_real_agent_wrote(tmp_path: Path, source: str) -> None:
    home = tmp_path / "home"
    work, env = WRITE[source](home)

    with Loopback(reply=claude.answers) as server:
        agent = claude.Claude(home, server)
        options = ("--from", source, "--to", "claude-code", "--json")
        made = json.loads(compactd(home, work, "handoff", *options, env=env))
        agent.go_on(made["written"]["session_id"], ASKED)
        said = json.dumps(claude.newest_messages(server, ASKED))

    places = [said.find(text) for text in (EARLY, "Noted.", ASKED)]
    assert -1 not in places, said
    assert places == sorted(places)


@pytest.mark.agent
@pytest.mark.editor
def test_a_session_that_opencode_exported_is_handed_over(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with Loopback(reply=lambda _: Answer(text="Noted.")) as server:
        env = settle(home, server)
        for command in (("run", "--model", "mock/mock-1", EARLY), ("session", "list", "--format", "json")):
            done = subprocess.run(
                [program(), *command], cwd=home / "work", env=env, capture_output=True, text=True,
                timeout=PATIENCE_S,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
        id = json.loads(done.stdout)[0]["id"]
        exported = subprocess.run(
            [program(), "export", id], cwd=home / "work", env=env, capture_output=True, timeout=PATIENCE_S
        )
    (home / "session.json").write_bytes(exported.stdout)
    (home / ".codex").mkdir()

    options = ("--from", "opencode", "--to", "codex", "--json")
    made = json.loads(compactd(home, home / "work", "handoff", home / "session.json", *options))

    check_moved(read(Path(made["written"]["path"]).read_bytes()), home / "work")


def check_moved(file: SessionFile, work: Path) -> None:
    """Check that a session has the user's words, once, the answer, and the folder."""
    messages = [message for message, _ in file.messages]
    words = [one.text for message in messages for one in stretches(message) if one.author == USER]
    assert [text.strip().strip('"') for text in words] == [EARLY]
    assert join_text_blocks(messages[-1].content) == "Noted."
    assert file.working_dir == str(work)
