"""pi 0.87.1, headless: its model gets shorter tool outputs if that is switched on, and recalls whole ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.daemons import DEAF, NEWER, daemon
from tests.editors.pi.driven import Pi
from tests.support.loopback import Answer, Call, Loopback, Seen
from tests.support.outputs_of_tools import FORGED, pip_output

pytestmark = [pytest.mark.editor, pytest.mark.agent]

OUTPUT = pip_output(60)
HIDDEN = "part-30>=1.0"
MARK = re.compile(r"\[… [^\]]+, expand (e\d+)\]")
ON = {"COMPACTD_PI_REDUCE": "default"}
PRINT = Call("bash", '{"command": "sh install.sh"}', "call_p")


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback(then=Answer(text="Noted.", count_input=True)) as provider:
        yield provider


@pytest.fixture(scope="module")
def process(server: Loopback, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pi]:
    with Pi(tmp_path_factory.mktemp("pi"), server, env=ON) as running:
        yield running


@pytest.fixture
def pi(process: Pi, server: Loopback) -> Pi:
    """Return the shared pi process, which reduces, with a new session."""
    process.new_session()
    server.forget()
    return process


def results(seen: Seen) -> list[str]:
    """Return the texts of the tool results in a request."""
    return [
        each["content"] if isinstance(each["content"], str) else each["content"][0]["text"]
        for each in seen.body["messages"]
        if each["role"] == "tool"
    ]


def print_output(pi: Pi, server: Loopback, text: str = OUTPUT, call: Call = PRINT) -> str:
    """Let the model print a text. Return the output that the model gets."""
    (pi.work / "output.txt").write_text(text)
    (pi.work / "install.sh").write_text("cat output.txt")
    server.play(Answer(calls=(call,), count_input=True))
    pi.ask("What is installed?")
    return results(server.requests[-1])[-1]


def recall(pi: Pi, server: Loopback, **arguments: object) -> str:
    server.play(Answer(calls=(Call("recall", json.dumps(arguments), "call_r"),), count_input=True))
    pi.ask("And the rest?")
    return results(server.requests[-1])[-1]


def test_the_model_gets_a_shorter_output_and_recalls_the_whole_one_by_its_mark(
    pi: Pi, server: Loopback
) -> None:
    shown = print_output(pi, server)

    mark = MARK.search(shown)
    assert mark
    assert HIDDEN not in shown
    assert len(shown) < len(OUTPUT) // 10
    whole = recall(pi, server, entries=[mark[1]])
    unmarked = whole.replace("(tool) ", "")
    assert OUTPUT.strip() in unmarked


def test_words_find_the_place_in_what_was_left_out(pi: Pi, server: Loopback) -> None:
    mark = MARK.search(print_output(pi, server))
    assert mark

    assert HIDDEN in recall(pi, server, query=HIDDEN)
    part = recall(pi, server, query=HIDDEN, entries=[mark[1]])

    assert HIDDEN in part
    assert "part-5>=" not in part


def test_lines_that_the_context_shows_are_not_shown_again_until_pi_itself_compacts(
    tmp_path: Path, server: Loopback
) -> None:
    """After pi's own compaction, compactd does not know what the model still sees."""
    server.forget()
    text = "".join(f"{number * 7919 % 104729:x} {chr(97 + number % 26) * 9}\n" for number in range(60))
    with Pi(tmp_path, server, env=ON) as pi:
        first = print_output(pi, server, text)
        second = print_output(pi, server, text, Call("bash", PRINT.arguments, "call_2"))
        assert text.strip() in first
        assert re.search(r"\[… \d+ lines as in e\d+", second)
    with Pi(tmp_path, server, env={"COMPACTD_COMMAND": str(tmp_path / "nowhere")}, args=("-c",)) as pi:
        pi.ask("word " * 900)
        pi.compact()
    with Pi(tmp_path, server, env=ON, args=("-c",)) as pi:
        third = print_output(pi, server, text, Call("bash", PRINT.arguments, "call_3"))
        told = pi.told

    assert told == []
    assert text.strip() in third


def test_a_reduced_output_survives_a_compaction_and_a_restart(tmp_path: Path, server: Loopback) -> None:
    server.forget()
    with Pi(tmp_path, server, env=ON) as pi:
        mark = MARK.search(print_output(pi, server))
        pi.ask("word " * 900)
        pi.compact()
    assert mark
    with Pi(tmp_path, server, env=ON, args=("-c",)) as pi:
        assert HIDDEN in recall(pi, server, entries=[mark[1]], query=HIDDEN)


@pytest.mark.parametrize("value", ["", "off", "observe", "nonsense"])
def test_nothing_is_changed_unless_that_is_switched_on(tmp_path: Path, server: Loopback, value: str) -> None:
    server.forget()
    with Pi(tmp_path, server, env={"COMPACTD_PI_REDUCE": value} if value else {}) as pi:
        shown = print_output(pi, server)
        told = pi.told
        state = pi.slash("state")

    assert OUTPUT.strip() in shown
    assert ("1 output would be reduced" in state) == (value == "observe")
    assert bool(told) == (value == "nonsense")


@pytest.mark.parametrize("filler", ["", OUTPUT], ids=["short", "long"])
def test_an_output_cannot_forge_a_mark(pi: Pi, server: Loopback, filler: str) -> None:
    shown = print_output(pi, server, f"first\n{FORGED}\n{filler}")

    assert FORGED not in shown
    if not filler:
        assert "[· 40 lines left out, expand e1]" in shown
    assert shown.count("[… ") == len(MARK.findall(shown))
    assert len(set(MARK.findall(shown))) == bool(filler)


@pytest.mark.parametrize("text", ["", NEWER, DEAF], ids=["missing", "other-version", "deaf"])
def test_a_daemon_that_fails_leaves_the_output_as_it_is(tmp_path: Path, server: Loopback, text: str) -> None:
    server.forget()
    command = daemon(tmp_path, text) if text else tmp_path / "nowhere"
    env = {**ON, "COMPACTD_COMMAND": str(command), "COMPACTD_PI_DEADLINE_S": "1"}
    with Pi(tmp_path, server, env=env) as pi:
        shown = [print_output(pi, server, call=Call("bash", PRINT.arguments, f"c{at}")) for at in range(4)]
        told = [line for line in pi.told if "a tool's output stays as it is" in line]

    assert all(OUTPUT.strip() in each for each in shown)
    assert len(told) == 3
    assert "and later ones too" in told[-1]
