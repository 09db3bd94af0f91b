"""`compactd doctor --where`: prints every place that contains a text, which is read from stdin only."""

from __future__ import annotations

import json
import subprocess
import zlib
from pathlib import Path

from tests.support.agent_transcripts import Turn
from tests.support.client import Daemon
from tests.support.command_line import COMPACTD, TIMEOUT_S, environment
from tests.support.hook_runs import Agent

LONG = 'sk-live-Zq8vXw3Trn0 "Ж" and\na second line'


def where(home: Path, text: str, *options: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*COMPACTD, "doctor", "--where", *options],
        input=text.encode(),
        capture_output=True,
        env=environment(home),
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def filled(home: Path) -> Path:
    """A data folder with the text in each kind of file."""
    data = home / "data"
    agent = Agent("claude-code", home)
    agent.session.say(Turn("user", LONG))
    agent.stop()
    with Daemon(data) as daemon:
        daemon.call("session/start", session_id="one", system_prompt=f"Say {LONG}")
        calling = {"type": "tool_call", "call_id": "c", "name": "f", "arguments": json.dumps({"k": LONG})}
        messages = [{"role": "user", "content": LONG}, {"role": "assistant", "content": [calling]}]
        daemon.call("session/append", session_id="one", messages=messages)
        daemon.call("session/search", query="live", limit=1)
        daemon.call("session/export", session_id="one", format="neutral", path=str(home / "exported.json"))
        assert daemon.stop() == 0
    objects = data / "snapshots" / "one-x" / "objects" / "ab"
    objects.mkdir(parents=True)
    (objects / "cd").write_bytes(zlib.compress(b"blob 9\0" + LONG.encode()))
    (objects / "torn").write_bytes(zlib.compress(b"something else" * 900)[:-9])
    (objects.parent / "pack").mkdir()
    (objects.parent / "pack" / "pack-1.pack").write_bytes(b"PACK")
    (data / "stray.bin").write_bytes(LONG.encode())
    (data / "linked").symlink_to(home / "exported.json")
    return data


def test_every_kind_of_holder_is_looked_into_and_what_is_not_is_said(tmp_path: Path) -> None:
    data = filled(tmp_path)

    code, out, err = where(tmp_path, LONG + "\n", "--json")

    told = json.loads(out)
    found = {
        (one["where"], one.get("session_id"), one.get("record"), one.get("entry_id"))
        for one in told["places"]
    }
    mirror = "claude-code:5c5cb639-aaaa"
    assert found == {
        ("journal", "one", "settings", None),
        ("journal", "one", "message", "e1"),
        ("journal", "one", "message", "e2"),
        ("journal", mirror, "message", "e1"),
        ("index", "one", None, "e1"),
        ("index", mirror, None, "e1"),
        ("index", None, None, None),
        ("hook", mirror, None, None),
        ("snapshots", None, None, None),
        ("unknown", None, None, None),
        ("export", "one", None, None),
        ("transcript", mirror, None, None),
    }
    assert {Path(one["path"]).name for one in told["not_looked_into"]} == {"torn", "pack-1.pack", "linked"}
    assert (code, err) == (1, "")
    assert "sk-live" not in out
    assert str(data) == told["folder"]


def test_a_text_that_stands_nowhere_is_said_so_and_none_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)

    nowhere = where(tmp_path, "zygomorphic")
    nothing = where(tmp_path, "\n")
    named = where(tmp_path, "x", "sk-live")

    assert (nowhere[0], nowhere[1].startswith("not found in ")) == (0, True)
    assert (nothing[0], "there is no text" in nothing[2]) == (2, True)
    assert (named[0], "standard input" in named[2]) == (2, True)


def test_people_read_where_it_stands_and_never_the_text(tmp_path: Path) -> None:
    filled(tmp_path)

    code, out, _ = where(tmp_path, LONG)

    assert code == 1
    assert "session one · message e1" in out
    assert "not searched: linked" in out
    assert "sk-live" not in out
