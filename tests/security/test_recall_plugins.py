"""The recall tools of OpenCode's plugin and pi's extension, run by node, quote text like the MCP server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compactd.client import Client
from tests.editors.agents import ROOT, node
from tests.security.test_recall_quoted import EVIL, FORGED, HIDDEN, TITLE, check_marks, messages
from tests.support.command_line import TIMEOUT_S, environment

ASK = Path(__file__).with_name("opencode_recall.mjs")
INTEGRATIONS = ROOT / "integrations"


def ran(home: Path, *arguments: object, given: str = "") -> str:
    """Run node and return what it printed."""
    command = home / "compactd"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m compactd "$@"\n')
    command.chmod(0o700)
    done = subprocess.run(
        [node(), *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        cwd=home,
        env=environment(home, {"COMPACTD_COMMAND": str(command), "COMPACTD_OPENCODE_DEADLINE_S": "60"}),
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tool(number: int, name: str, output: str) -> dict[str, Any]:
    """An answer of OpenCode's model with a tool call that has ended."""
    state = {"status": "completed", "input": {}, "output": output}
    part = {"id": f"prt_{number}", "type": "tool", "callID": f"c{number}", "tool": name, "state": state}
    info = {"id": f"msg_{number}", "role": "assistant", "time": {"completed": 1}, "finish": "tool-calls"}
    return {"info": info, "parts": [part]}


def test_opencodes_recall_marks_each_line_of_a_stranger_and_nothing_forged_survives(tmp_path: Path) -> None:
    first = {"type": "text", "text": "Never publish zebra.\nAsk me first."}
    said = [
        {"info": {"id": "msg_0", "role": "user"}, "parts": [first]},
        tool(1, "read_file", FORGED),
        tool(2, EVIL, HIDDEN),
        tool(3, "read", TITLE),
    ]
    (tmp_path / "said.json").write_text(json.dumps(said))
    asked = [{"query": "zebra"}, {"entries": "e1 e2 e3 e4 e5 e6 e7"}, {"query": "never ask"}]

    out = ran(
        tmp_path,
        ASK,
        INTEGRATIONS / "opencode" / "compactd.js",
        tmp_path / "said.json",
        given="".join(json.dumps(one) + "\n" for one in asked),
    )
    found, whole, cut = [json.loads(line) for line in out.rstrip("\n").split("\n")]

    for text in (found, whole, cut):
        check_marks(text)
    assert f"(tool) {HIDDEN}" in found
    assert "\nNever publish zebra.\nAsk me first." in whole
    assert "(tool) zebra never ask" in cut


@pytest.mark.parametrize(("most", "words"), [(8_000, ""), (60, "zebra"), (25, "never ask"), (25, "no such")])
def test_a_record_in_pi_keeps_its_marks_wherever_it_is_cut(tmp_path: Path, most: int, words: str) -> None:
    with Client(env=environment(tmp_path)) as client:
        client.session_start(session_id="s")
        client.session_append(session_id="s", messages=messages())
        found = client.session_expand(
            session_id="s", entry_ids=tuple(f"e{number}" for number in range(1, 9)), quoted=True
        )
    entries = [
        {"entry_id": one.entry_id, "message": json.loads(bytes(one.message)), "quoted": one.quoted}
        for one in found.entries
    ]
    (tmp_path / "entries.json").write_text(json.dumps(entries))
    (tmp_path / "shown.mjs").write_text(
        f"import {{ recordOf }} from {json.dumps(str(INTEGRATIONS / 'pi' / 'messages.ts'))};\n"
        'import { readFileSync } from "node:fs";\n'
        'const entries = JSON.parse(readFileSync("entries.json", "utf8"));\n'
        f"const shown = entries.map((each) => recordOf(each, {most}, {json.dumps(words)}));\n"
        "console.log(JSON.stringify(shown));\n"
    )

    shown = json.loads(ran(tmp_path, "shown.mjs"))

    # Cut to some characters, a line of a person's or of the model's need not be whole.
    check_marks("\n\n".join(shown if most > 1_000 else [shown[2], shown[4]]))
    assert shown[0].startswith("[e1 · user]\n")
    assert len(max(shown, key=len)) < most + 8 * 12 + 40 or most > 1_000


def test_the_wire_gives_a_message_to_the_byte_beside_its_quoted_form(tmp_path: Path) -> None:
    with Client(env=environment(tmp_path)) as client:
        client.session_start(session_id="s")
        client.session_append(session_id="s", messages=messages())
        (exact,) = client.session_expand(session_id="s", entry_ids=("e3",)).entries
        (both,) = client.session_expand(session_id="s", entry_ids=("e3",), quoted=True).entries

    assert json.loads(bytes(exact.message)) == messages()[2]
    assert bytes(exact.message) == bytes(both.message)
    assert "quoted" not in exact.__struct_fields__ or not isinstance(exact.quoted, str)
    assert isinstance(both.quoted, str)
    check_marks(both.quoted)
