"""pi 0.87.1, headless, with compactd's extension: compactd does its compactions; no failure stops pi."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactd.core.text.sanitize import CODES
from tests.editors.daemons import DEAF, DYING, NAMED, NEWER, daemon
from tests.editors.pi.driven import EXTENSION, SUMMARISER, Pi, cli, settle
from tests.support.loopback import Answer, Call, Loopback, Overflow, Seen

pytestmark = [pytest.mark.editor, pytest.mark.agent]

OURS = "[Conversation summary"
RULE = "Never touch src/api.py."
COUNTED = Answer(text="Noted.", count_input=True)


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback(then=COUNTED) as provider:
        yield provider


@pytest.fixture(scope="module")
def process(server: Loopback, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pi]:
    with Pi(tmp_path_factory.mktemp("pi"), server) as running:
        yield running


@pytest.fixture
def pi(process: Pi, server: Loopback) -> Pi:
    """Return the shared pi process with a new session."""
    process.new_session()
    server.forget()
    return process


def words(topic: str, count: int = 250) -> str:
    """Return `count` words of filler text, about two tokens per word."""
    return f"{topic}: " + " ".join(f"{topic}{number:04}" for number in range(count))


def talk(pi: Pi) -> None:
    """Run three turns. The first contains the rule that must not be lost."""
    pi.ask(f"{RULE} The port is 48213. {words('alpha')}")
    pi.ask(f"Rename the loader. {words('beta')}")
    pi.ask(words("gamma"))


def said(seen: Seen) -> str:
    return json.dumps(seen.body["messages"], ensure_ascii=False)


def summaries_asked(server: Loopback) -> list[Seen]:
    return [seen for seen in server.requests if SUMMARISER in said(seen)]


def test_a_manual_compaction_is_ours_and_asks_no_model(pi: Pi, server: Loopback) -> None:
    talk(pi)
    asked = len(server.requests)

    done = pi.compact()

    assert len(server.requests) == asked
    assert done["summary"].startswith(OURS)
    pi.ask("Go on.")
    request = said(server.requests[-1])
    assert OURS in request
    assert RULE in request
    assert "alpha0249" not in request
    assert "gamma0249" in request
    assert "Go on." in request
    assert not summaries_asked(server)
    assert any(line.startswith("compacted ") for line in pi.told)
    assert pi.gauges[-1].startswith("ctx ")


def test_the_files_that_were_touched_stand_in_the_summary(pi: Pi, server: Loopback) -> None:
    (pi.work / "loader.py").write_text("CACHE = {}\n")
    server.play(
        Answer(text="I look.", calls=(Call("read", '{"path": "loader.py"}', "call_r"),), count_input=True)
    )
    pi.ask(f"Read the loader. {words('alpha')}")
    pi.ask(words("beta"))

    done = pi.compact()

    assert "loader.py" in done["summary"].partition("<read-files>")[2]
    assert done["details"]["readFiles"] == ["loader.py"]


def test_beyond_the_threshold_the_compaction_is_ours(pi: Pi, server: Loopback) -> None:
    for topic in ("alpha", "beta", "gamma", "delta"):
        pi.ask(f"{RULE} {words(topic, 600)}")

    pi.ask("Go on.")

    reasons = [event["reason"] for event in pi.since_new("compaction_end")]
    assert reasons
    assert set(reasons) == {"threshold"}
    assert OURS in said(server.requests[-1])
    assert RULE in said(server.requests[-1])
    assert not summaries_asked(server)


def test_after_an_overflow_pi_sends_again_with_our_summary(pi: Pi, server: Loopback) -> None:
    talk(pi)
    server.play(Overflow(requested=9_000, limit=8_000))

    pi.ask("Go on.")

    ends = pi.since_new("compaction_end")
    assert [(end["reason"], end["willRetry"]) for end in ends] == [("overflow", True)]
    refused, again = server.requests[-2:]
    assert OURS not in said(refused)
    assert OURS in said(again)
    assert RULE in said(again)
    assert "Go on." in said(again)
    assert not summaries_asked(server)


def test_a_turn_that_is_cut_in_two_is_in_our_summary(pi: Pi, server: Loopback) -> None:
    (pi.work / "notes.txt").write_text(words("delta", 500))
    call = Call("read", '{"path": "notes.txt"}', "call_n")
    server.play(
        Answer(text="I look.", calls=(call,), count_input=True),
        Answer(text=words("epsilon", 400), count_input=True),
    )
    pi.ask(f"{RULE} The port is 48213. {words('alpha')}")

    done = pi.compact()

    assert RULE in done["summary"]
    pi.ask("Go on.")
    request = said(server.requests[-1])
    assert OURS in request
    assert "epsilon0399" in request
    assert "delta0499" not in request
    assert not summaries_asked(server)


def test_a_second_compaction_keeps_what_the_first_kept(pi: Pi, server: Loopback) -> None:
    talk(pi)
    pi.compact()
    pi.ask(f"Keep the log level at debug. {words('delta')}")
    pi.ask(words("epsilon"))

    second = pi.compact()

    assert second["summary"].count(OURS) == 1
    pi.ask("Go on.")
    request = said(server.requests[-1])
    assert RULE in request
    assert "48213" in request
    assert request.count(OURS) == 1
    assert not summaries_asked(server)


def test_an_undo_brings_the_messages_back_into_the_next_request(pi: Pi, server: Loopback) -> None:
    talk(pi)
    pi.compact()
    pi.ask("Go on.")
    assert "alpha0249" not in said(server.requests[-1])

    told = pi.slash("undo")

    assert told.startswith("taken back")
    pi.ask("And now?")
    request = said(server.requests[-1])
    assert OURS not in request
    order = [request.index(word) for word in ("alpha0249", "beta0249", "gamma0249", "Go on.", "And now?")]
    assert order == sorted(order)
    pi.compact()
    pi.ask("Once more.")
    assert said(server.requests[-1]).count(OURS) == 1
    assert RULE in said(server.requests[-1])


def test_the_model_recalls_a_line_that_the_compaction_removed(pi: Pi, server: Loopback) -> None:
    talk(pi)
    pi.compact()
    server.play(Answer(calls=(Call("recall", '{"query": "beta0200"}', "call_q"),), count_input=True))

    pi.ask("Which word was number 200?")

    assert "recall" in [tool["function"]["name"] for tool in server.requests[-1].body["tools"]]
    result = next(m for m in server.requests[-1].body["messages"] if m["role"] == "tool")
    assert "beta0200" in json.dumps(result)


def test_the_command_tells_state_preview_and_what_was_said(pi: Pi) -> None:
    talk(pi)

    assert "in the context" in pi.slash("state")
    assert "48213" in pi.slash("search 48213")
    assert pi.slash("preview").startswith("a compaction now would remove ")
    assert pi.slash("nonsense").startswith("/compactd state")


def test_what_a_conversation_holds_is_no_command_to_the_terminal(pi: Pi) -> None:
    pi.ask("The port is 98765.\x1b]0;owned\x07 \u202etxt.exe \u061c\u200f\ufeff\U000e0041")

    told = pi.slash("search 98765")

    assert "98765" in told
    assert not set(CODES) & set(map(ord, told))


GOTO = """\
export default function (pi) {
  pi.registerCommand("goto", {
    description: "to the answer with that number",
    handler: async (args, ctx) => {
      const said = ctx.sessionManager.getBranch().filter((entry) => entry.message?.role === "assistant");
      await ctx.navigateTree(said[Number(args)].id);
      ctx.ui.notify("there");
    },
  });
}
"""


def test_what_stands_on_another_branch_of_the_tree_is_not_in_the_summary(
    tmp_path: Path, server: Loopback
) -> None:
    server.forget()
    (tmp_path / "goto.ts").write_text(GOTO)
    with Pi(tmp_path, server, args=("-e", str(tmp_path / "goto.ts"))) as pi:
        pi.ask(f"{RULE} {words('alpha')}")
        pi.ask(f"Drop the table invoices. {words('beta')}")
        assert "4 messages" in pi.slash("state")
        assert pi.slash("0", command="goto") == "there"
        pi.ask(f"Always log to stderr. {words('gamma')}")
        pi.ask(words("delta"))

        summary = pi.compact()["summary"]

        assert summary.startswith(OURS)
        pi.ask("Go on.")
        request = said(server.requests[-1])
        assert RULE in request
        assert "Always log to stderr." in request
        assert "invoices" not in request


def test_a_session_that_is_resumed_is_compacted_whole(tmp_path: Path, server: Loopback) -> None:
    server.forget()
    with Pi(tmp_path, server) as pi:
        talk(pi)
        pi.compact()
        pi.ask(words("delta"))
    with Pi(tmp_path, server, args=("-c",)) as pi:
        pi.ask(words("epsilon"))

        summary = pi.compact()["summary"]

        assert summary.count(OURS) == 1
        assert RULE in summary
        assert pi.slash("undo").startswith("taken back")
        assert not summaries_asked(server)


def test_a_daemon_that_is_killed_between_turns_is_started_again(tmp_path: Path, server: Loopback) -> None:
    server.forget()
    with Pi(tmp_path, server, env={"COMPACTD_COMMAND": str(daemon(tmp_path, NAMED))}) as pi:
        talk(pi)
        os.kill(int((tmp_path / "mark").read_text()), signal.SIGKILL)

        done = pi.compact()

        assert done["summary"].startswith(OURS)
        assert RULE in done["summary"]
        assert not summaries_asked(server)
        assert len((tmp_path / "mark").read_text().split()) == 2


def test_where_the_daemon_dies_in_a_compaction_pi_makes_its_own_and_goes_on(
    tmp_path: Path, server: Loopback
) -> None:
    server.forget()
    with Pi(tmp_path, server, env={"COMPACTD_COMMAND": str(daemon(tmp_path, DYING))}) as pi:
        talk(pi)

        pi.compact()

        assert len(summaries_asked(server)) >= 1
        assert len([line for line in pi.told if "pi compacts by itself: the daemon ended" in line]) == 1
        server.forget()
        pi.ask(words("delta"))
        pi.ask(words("epsilon"))
        assert pi.compact()["summary"].startswith(OURS)
        pi.ask("Go on.")
        assert RULE in said(server.requests[-1])
        assert not summaries_asked(server)


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "was not found"), (NEWER, "speaks protocol 2.0"), (DEAF, "within")],
    ids=["missing", "other-version", "deaf"],
)
def test_with_no_daemon_to_speak_to_pi_compacts_by_itself_and_says_why(
    tmp_path: Path, server: Loopback, text: str, why: str
) -> None:
    server.forget()
    command = daemon(tmp_path, text) if text else tmp_path / "nowhere"
    env = {"COMPACTD_COMMAND": str(command), **({"COMPACTD_PI_DEADLINE_S": "1"} if text == DEAF else {})}
    with Pi(tmp_path, server, env=env) as pi:
        talk(pi)

        pi.compact()

        assert len(summaries_asked(server)) >= 1
        told = [line for line in pi.told if line.startswith("compactd: pi compacts by itself")]
        assert len(told) == 1
        assert why in told[0]
        pi.ask("Go on.")
        assert "Go on." in said(server.requests[-1])


def test_pi_installs_the_extension_as_a_package_and_takes_it_off(tmp_path: Path, server: Loopback) -> None:
    env = settle(tmp_path, server, keep=300)

    def run(*words: str) -> str:
        done = subprocess.run(
            [*cli(), *words], cwd=tmp_path / "work", env=env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    run("install", str(EXTENSION))
    server.forget()
    run("-p", "--provider", "mock", "--model", "mock-1", "Hello.")
    assert "recall" in [tool["function"]["name"] for tool in server.requests[-1].body["tools"]]
    run("remove", str(EXTENSION))
    run("-p", "--provider", "mock", "--model", "mock-1", "Hello.")
    assert "recall" not in [tool["function"]["name"] for tool in server.requests[-1].body["tools"]]
