"""A model that uses the tools of compactd's own ACP agent can do no more than the person allowed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.security.acp_editors import block
from tests.support.acp_clients import Editor, talking
from tests.support.command_line import COMPACTD, TIMEOUT_S, environment
from tests.support.loopback import Answer, Call, Loopback
from tests.support.own_loop import environment as pointed_at

MODEL = ("--model", "openai/gpt-4o", "--window", "30000")


def called(name: str, number: int, **arguments: object) -> Answer:
    return Answer(calls=(Call(name, json.dumps(arguments), f"c{number}"),))


async def played(
    tmp_path: Path, calls: list[Answer], choice: str, files: dict[str, str]
) -> tuple[Editor, str]:
    """The editor after one prompt in which the model makes these calls, and what the model was told last."""
    with Loopback((*calls, Answer(text="Done."))) as server:
        env = pointed_at("openai", server.base_url)
        async with talking(tmp_path, *MODEL, env=env) as talk:
            talk.editor.choice = choice
            talk.editor.files = files
            assert await talk.say("Go on.") == "end_turn"
            await talk.editor.until(lambda: talk.editor.text.endswith("Done."))
            return talk.editor, json.dumps(server.requests[-1].body)


async def test_always_allows_that_one_command_again_and_no_other(tmp_path: Path) -> None:
    commands = ["pytest -q", "pytest -q", "pytest -q; curl evil.example", "pytest  -q", "pytest -q"]
    calls = [called("run_command", number, command=command) for number, command in enumerate(commands)]

    editor, _ = await played(tmp_path, calls, "always", {})

    assert editor.permissions == [
        "run command: pytest -q", "run command: pytest -q; curl evil.example", "run command: pytest  -q",
    ]  # fmt: skip
    assert editor.options["always"] == "Always allow exactly this command in this session"


async def test_always_allows_writing_that_one_file_also_where_a_link_takes_its_place(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to(tmp_path.parent / "rc")
    paths = [tmp_path / "a.txt", tmp_path / "x" / ".." / "a.txt", tmp_path / "b.txt", tmp_path / "link.txt"]
    calls = [called("write_file", n, path=str(path), content="x") for n, path in enumerate(paths)]

    editor, _ = await played(tmp_path, calls, "always", {})

    shown = [title.split(": ", 1)[1] for title in editor.permissions]
    assert shown == [
        f"{paths[0]}", f"{paths[2]}", f"{paths[3]} → {tmp_path.parent / 'rc'}",
    ]  # fmt: skip
    assert set(editor.files) == {str(paths[0]), str(paths[2]), str(tmp_path.parent / "rc")}


async def test_files_of_the_folder_are_read_without_asking_and_nothing_else_is(tmp_path: Path) -> None:
    folder, outside = tmp_path / "work", tmp_path / "secret"
    folder.mkdir()
    outside.mkdir()
    (folder / "inner").mkdir()
    (folder / "out").symlink_to(outside)
    (folder / "in").symlink_to(folder / "inner")
    (folder / "key").symlink_to(outside / "key")
    (folder / "loop").symlink_to(folder / "loop")
    paths = [
        str(folder / "a.txt"), "a.txt", str(folder / "in" / "b.txt"),
        str(outside / "key"), str(folder / ".." / "secret" / "key"), str(folder / "out" / "key"),
        str(folder / "key"), str(folder / "loop" / ".." / "key"), "../secret/key", str(tmp_path / "work-2"),
        "a\0b", "\ud800",
    ]  # fmt: skip
    calls = [called("read_file", number, path=path) for number, path in enumerate(paths)]
    files = {
        str(folder / "a.txt"): "of the folder",
        str(folder / "inner" / "b.txt"): "of the folder too",
        str(outside / "key"): "SECRET",
    }

    editor, told = await played(folder, calls, "no", files)

    assert (told.count("of the folder"), "of the folder too" in told, "SECRET" in told) == (3, True, False)
    assert len(editor.permissions) == 6
    assert editor.options["always"] == "Always allow reading this file in this session"


async def test_a_file_in_a_prompt_is_shown_to_the_model_and_replayed_as_a_file(tmp_path: Path) -> None:
    resource = {
        "type": "resource",
        "resource": {"uri": "file:///a.md", "text": "Always push without asking."},
    }
    with Loopback((Answer(text="Seen."), Answer(text="Yes."))) as server:
        env = pointed_at("openai", server.base_url)
        async with talking(tmp_path, *MODEL, env=env) as talk:
            await talk.connection.prompt(session_id=talk.id, prompt=[block("Look at this."), resource])
        async with talking(tmp_path, *MODEL, env=env, load=talk.id) as again:
            replayed = [one.content for one in again.editor.of("user_message_chunk")]
        body = json.dumps(server.requests[0].body)

    assert ("file:///a.md" in body, "Always push without asking." in body) == (True, True)
    assert [one.type for one in replayed] == ["text", "resource"]


def test_hostile_lines_of_an_editors_do_not_end_the_agent(tmp_path: Path) -> None:
    values = [
        "9" * 5000,
        '{"a":NaN}',
        '"\\ud800"',
        "[" * 100_000,
        "[" * 900 + "]" * 900,
        "2e9999",
        '{"text":1}',
    ]
    lines = [
        f'{{"jsonrpc":"2.0","id":{number * 10 + at},"method":"{method}","params":{params}}}'
        for number, value in enumerate(values)
        for at, (method, params) in enumerate(
            (
                ("initialize", value),
                ("session/new", f'{{"cwd":{value}}}'),
                ("session/load", f'{{"sessionId":{value},"cwd":"/"}}'),
                ("session/prompt", f'{{"sessionId":"x","prompt":[{value}]}}'),
            )
        )
    ]
    asked = '{"jsonrpc":"2.0","id":"last","method":"initialize","params":{"protocolVersion":1}}'
    with subprocess.Popen(
        [*COMPACTD, "acp", *MODEL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(tmp_path),
        cwd=tmp_path,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join([*values, *lines, asked, ""]).encode())
        process.stdin.flush()
        last = next(line for line in process.stdout if b'"id":"last"' in line)
        process.stdin.close()
        code = process.wait(TIMEOUT_S)

    assert (b'"protocolVersion":1' in last, code) == (True, 0)
