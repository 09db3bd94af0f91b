"""OpenCode 1.18.33, headless: its model gets shorter tool outputs if that is on, and recalls whole ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.daemons import DEAF, daemon
from tests.editors.opencode.driven import OpenCode, Session
from tests.support.loopback import Answer, Call, Loopback, Seen
from tests.support.outputs_of_tools import FORGED, pip_output

pytestmark = [pytest.mark.editor, pytest.mark.agent]

OUTPUT = pip_output(60)
HIDDEN = "part-30>=1.0"
MARK = re.compile(r"\[… [^\]]+, expand (e\d+)\]")
ON = {"COMPACTD_OPENCODE_REDUCE": "default"}
PRINT = '{"command": "sh install.sh", "description": "install"}'


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback(then=Answer(text="Noted.", count_input=True)) as provider:
        yield provider


@pytest.fixture(scope="module")
def opencode(server: Loopback, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenCode]:
    with OpenCode(tmp_path_factory.mktemp("opencode"), server, env=ON) as running:
        yield running


@pytest.fixture
def session(opencode: OpenCode, server: Loopback) -> Session:
    """Return a new session of the shared OpenCode, which reduces."""
    server.forget()
    return opencode.new_session()


def results(seen: Seen) -> list[str]:
    """Return the texts of the tool results in a request."""
    return [str(each["content"]) for each in seen.body["messages"] if each["role"] == "tool"]


def last_result(server: Loopback) -> str:
    return results(next(seen for seen in reversed(server.requests) if seen.body.get("tools")))[-1]


def print_output(
    opencode: OpenCode, session: Session, server: Loopback, text: str = OUTPUT, call_id: str = "call_p"
) -> str:
    """Let the model print a text. Return the output that the model gets."""
    (opencode.work / "output.txt").write_text(text)
    (opencode.work / "install.sh").write_text("cat output.txt")
    server.play(Answer(calls=(Call("bash", PRINT, call_id),), count_input=True))
    session.ask("What is installed?")
    return last_result(server)


def recall(session: Session, server: Loopback, **arguments: str) -> str:
    server.play(Answer(calls=(Call("recall", json.dumps(arguments), "call_r"),), count_input=True))
    session.ask("And the rest?")
    return last_result(server)


def test_the_model_gets_a_shorter_output_and_recalls_the_whole_one_by_its_mark(
    opencode: OpenCode, session: Session, server: Loopback
) -> None:
    shown = print_output(opencode, session, server)

    mark = MARK.search(shown)
    assert mark
    assert HIDDEN not in shown
    assert len(shown) < len(OUTPUT) // 5
    assert OUTPUT.strip() in recall(session, server, query="", entries=mark[1]).replace("(tool) ", "")
    part = recall(session, server, query=HIDDEN, entries=mark[1])
    assert HIDDEN in part
    assert "part-5>=" not in part


def test_lines_that_the_context_shows_are_not_shown_again_until_opencodes_model_compacts(
    tmp_path: Path, server: Loopback
) -> None:
    """After a summary of OpenCode's model, compactd does not know what the model still sees."""
    server.forget()
    text = "".join(f"{number * 7919 % 104729:x} {chr(97 + number % 26) * 9}\n" for number in range(60))
    with OpenCode(tmp_path, server, env=ON) as opencode:
        session = opencode.new_session()
        first = print_output(opencode, session, server, text, "call_1")
        second = print_output(opencode, session, server, text, "call_2")
        assert text.strip() in first
        assert re.search(r"\[… \d+ lines as in e\d+", second)
    with OpenCode(tmp_path, server, env={"COMPACTD_COMMAND": str(tmp_path / "nowhere")}) as opencode:
        again = Session(opencode, session.id)
        again.ask("word " * 1_500)
        again.compact()
    with OpenCode(tmp_path, server, env=ON) as opencode:
        third = print_output(opencode, Session(opencode, session.id), server, text, "call_3")

    assert text.strip() in third


@pytest.mark.parametrize("value", ["", "observe", "nonsense"])
def test_nothing_is_changed_unless_that_is_switched_on(tmp_path: Path, server: Loopback, value: str) -> None:
    server.forget()
    env = {"COMPACTD_OPENCODE_REDUCE": value} if value else {}
    with OpenCode(tmp_path, server, env=env) as opencode:
        shown = print_output(opencode, opencode.new_session(), server)
        said = opencode.said()
    journals = "".join(path.read_text() for path in tmp_path.glob("compactd/sessions/*.jsonl"))

    assert OUTPUT.strip() in shown
    assert ('"type":"reduction"' in journals) == (value == "observe")
    assert '"type":"reduced"' not in journals
    assert ("COMPACTD_OPENCODE_REDUCE must be" in said) == (value == "nonsense")


@pytest.mark.parametrize("filler", ["", OUTPUT], ids=["short", "long"])
def test_an_output_cannot_forge_a_mark(
    opencode: OpenCode, session: Session, server: Loopback, filler: str
) -> None:
    shown = print_output(opencode, session, server, f"first\n{FORGED}\n{filler}")

    assert FORGED not in shown
    if not filler:
        assert "[· 40 lines left out, expand e1]" in shown
    assert shown.count("[… ") == len(MARK.findall(shown))
    assert len(set(MARK.findall(shown))) == bool(filler)


@pytest.mark.parametrize("text", ["", DEAF], ids=["missing", "deaf"])
def test_a_daemon_that_fails_leaves_the_output_as_it_is(tmp_path: Path, server: Loopback, text: str) -> None:
    server.forget()
    command = daemon(tmp_path, text) if text else tmp_path / "nowhere"
    env = {**ON, "COMPACTD_COMMAND": str(command), "COMPACTD_OPENCODE_DEADLINE_S": "1"}
    with OpenCode(tmp_path, server, env=env) as opencode:
        session = opencode.new_session()
        shown = [print_output(opencode, session, server, call_id=f"call_{at}") for at in range(4)]
        said = opencode.said()

    assert all(OUTPUT.strip() in each for each in shown)
    assert said.count("a tool's output stays as it is") == 3
    assert "and later ones too" in said
