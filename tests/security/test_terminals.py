"""Text of a session that a command prints can neither control the terminal nor hide in a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.cli.framework.page import without_controls
from compactd.core.text.escape_invisible import visible_json
from tests.support.client import Daemon
from tests.support.command_line import ANSI, COMPACTD, TERMINAL, TIMEOUT_S, environment
from tests.support.loopback import Answer, Loopback
from tests.support.own_loop import environment as with_provider
from tests.support.session_files import turns
from tests.support.terminals import in_terminal

NASTY = (
    "a\x1b]0;owned\x07b\x1b[2J\x1b[31mc\x9b2Jd\x90q\x9ce\x08\x08f\x0dg\x7fh"  # orders, and what undoes a line
    "\u202ei\u202dj\u202bk\u202al\u202cm\u2066n\u2067o\u2068p\u2069q"  # what CVE-2021-42574 is about
    "\u200er\u200fs\u061ct\U000e0041u\ufeffv"  # marks without a width, and letters that nobody sees
)
"""Each sign of it with a letter behind, so that it is seen that the text itself is shown."""

BAD = (
    {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} - set("\n\t")
    | set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\ufeff")
    | {chr(code) for code in range(0xE0000, 0xE0080)}
)

HIDDEN = BAD | set("\u2028\u2029")
"""Characters that JSON may contain raw and that a command may not print."""


def messages() -> list[dict[str, object]]:
    call = {"id": "c1", "type": "function", "function": {"name": f"read{NASTY}", "arguments": '{"path":"x"}'}}
    return [
        {"role": "system", "content": NASTY},
        {"role": "user", "content": f"{NASTY} never touch bank.toml{NASTY}"},
        {"role": "assistant", "content": f"I shall.{NASTY}", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": f"error: {NASTY}"},
        *turns(8),
        {"role": "user", "content": f"And again {NASTY}"},
    ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a stored session and a session file, both hostile in each of their parts."""
    home = tmp_path_factory.mktemp("home")
    (home / "nasty.json").write_text(json.dumps(messages()))
    (home / "opencode.json").write_text(json.dumps({"model": f"openai/x{NASTY}"}))
    (home / "error.json").write_text(json.dumps({"error": {"message": NASTY, "code": NASTY}}))
    odd = "".join(sign for sign in NASTY if ord(sign) >= 0xA0)
    with Daemon(home / "data") as daemon:
        daemon.call("session/start", session_id=f"odd{odd}", title=NASTY, model=f"openai/x{NASTY}")
        daemon.call("session/append", session_id=f"odd{odd}", messages=messages()[1:], format="openai")
        daemon.call("session/compact", session_id=f"odd{odd}", keep_messages=2)
    return home


def shown(home: Path, *arguments: str, env: dict[str, str], given: str = "") -> str:
    """Return what a command prints to stdout and stderr, without its own colour codes."""
    done = subprocess.run(
        [*COMPACTD, *arguments],
        input=given.encode(),
        capture_output=True,
        env=environment(home, env),
        cwd=home,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode in (0, 1, 2, 3), (arguments, done.stderr)
    assert b"Traceback" not in done.stderr
    return ANSI.sub("", (done.stdout + done.stderr).decode())


COMMANDS = {
    "inspect": ("nasty.json",),
    "diff": ("nasty.json", "--target", "1k"),
    "watch": ("nasty.json", "--once"),
    "sessions": (),
    "search": ("touch",),
    "convert": ("no\x1b[2J\u202efile", "x", "--to", "pi"),
    "handoff": ("nasty.json", "--to", "opencode"),
    "resume": ("codex", "no\x1b[2J\u202efile"),
}
"""The commands that are tested here. `compact` and `classify` have their own tests."""


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_shows_what_commands_a_terminal(place: Path, name: str) -> None:
    seen = shown(place, name, *COMMANDS[name], env=TERMINAL)

    assert sorted(set(seen) & BAD) == []
    assert seen.strip()


JSON_COMMANDS = {
    "inspect": ("inspect", "nasty.json"),
    "compact": ("compact", "nasty.json", "--target", "1k"),
    "diff": ("diff", "nasty.json", "--target", "1k"),
    "watch": ("watch", "nasty.json", "--once"),
    "handoff": ("handoff", "nasty.json", "--to", "opencode", "--dry-run"),
    "sessions": ("sessions",),
    "search": ("search", "touch"),
    "classify": ("classify", "error.json"),
    "convert to a file": ("convert", "nasty.json", "out\u202e\x9b2J.jsonl", "--to", "pi", "--force"),
    "a file that is not there": ("inspect", "no\x9b2J\u202efile"),
    "a model": ("models", "openai/x\x9b2J\u202e"),
    "deleting what is not there": ("sessions", "delete", "odd\x9b2J\u202e", "--yes"),
}

HOLD_IT = ("sessions", "search")
"""The value of these holds what the session said, to the sign."""


@pytest.mark.parametrize("name", JSON_COMMANDS)
def test_the_json_of_a_command_holds_the_same_text_and_commands_no_terminal(place: Path, name: str) -> None:
    arguments = (*JSON_COMMANDS[name], "--json")

    seen = in_terminal(place, *arguments, env={"PAGER": "cat"}, with_errors=False)

    assert sorted(set(seen.text) & HIDDEN) == []
    told, piped = json.loads(seen.text), json.loads(shown(place, *arguments, env={}))
    assert told.keys() == piped.keys()
    assert hidden_in(told) == hidden_in(piped)
    assert name not in HOLD_IT or "\u202e" in hidden_in(told)


def hidden_in(value: object) -> set[str]:
    return set(json.dumps(value, ensure_ascii=False)) & HIDDEN


@pytest.mark.parametrize("to", ["pi", "claude-code", "openai", "aider", "neutral"])
def test_a_file_that_is_converted_to_a_terminal_commands_it_not(place: Path, to: str) -> None:
    seen = in_terminal(place, "convert", "nasty.json", "-", "--to", to)

    assert seen.code == 0
    assert sorted(set(seen.text) & HIDDEN) == []
    assert "bank.toml" in seen.text


def test_a_file_that_is_converted_to_a_pipe_is_not_changed(place: Path) -> None:
    seen = shown(place, "convert", "nasty.json", "-", "--to", "pi", env={})

    assert "c\x9b2Jd\x90q\x9ce" in seen


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.sampled_from([*sorted(HIDDEN), "a"])), inner),
)


@given(JSON_VALUES)
def test_json_without_hidden_signs_is_the_same_value(value: object) -> None:
    shown = visible_json(msgspec.json.encode(value).decode())

    assert json.loads(shown) == value
    assert set(shown) & HIDDEN == set()


def test_a_chat_shows_neither_the_models_words_nor_the_history_as_orders(tmp_path: Path) -> None:
    with Loopback(then=Answer(text=f"Done.{NASTY}", thinking=NASTY)) as server:
        done = subprocess.run(
            [sys.executable, "-m", "compactd", "chat", "--plain", "--model", "anthropic/claude-sonnet-4-5"],
            input=f"Hello{NASTY.replace(chr(13), '')}\n/search Done\n/context\n".encode(),
            capture_output=True,
            env={
                **os.environ,
                "COMPACTD_HOME": str(tmp_path / "data"),
                "XDG_CONFIG_HOME": str(tmp_path),
                **with_provider("anthropic", server.base_url),
            },
            timeout=TIMEOUT_S,
            check=False,
        )

    seen = ANSI.sub("", (done.stdout + done.stderr).decode())
    assert (done.returncode, "Done." in seen) == (0, True)
    assert sorted(set(seen) & BAD) == []


def test_letters_of_every_script_and_joined_signs_are_shown_as_they_are() -> None:
    text = "naïve 日本語 עברית العربية हिन्दी \U0001f468\u200d\U0001f469\u200d\U0001f467 می\u200cخواهم\n\tend"

    assert without_controls(text) == text
