"""Where agents keep their session files on this machine, and which of them belong to a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from compactd.cli.agent_files.places import (
    AGENTS,
    MAX_HEADERS_READ,
    TITLES,
    files_of_folder,
    find_files,
    newest,
    project_name,
    uses_database,
)
from compactd.cli.agent_files.resume import place_of
from compactd.formats.files.session_formats import title_of
from compactd.storage.paths import SDK_TRANSCRIPTS, file_stem
from tests.support.agent_homes import EXTENSION, HOMES, agent_of, set_age, write_session


@pytest.fixture
def home(tmp_path) -> Path:
    return tmp_path / "home"


def env(home: Path, **more: object) -> dict[str, str]:
    return {"HOME": str(home), **{name: str(value) for name, value in more.items()}}


def found(home: Path, **more: object) -> list[Path]:
    return [file.path for file in find_files(env(home, **more))]


def test_each_agent_is_called_as_in_the_list_of_formats() -> None:
    assert {agent: title_of(agent) for agent in AGENTS} == TITLES


@pytest.mark.parametrize("kind", HOMES)
def test_the_session_of_each_agent_is_found(home, kind) -> None:
    path = write_session(home, kind, Path("/code/ledger"))

    (file,) = find_files(env(home))

    assert (file.agent, file.path, file.is_subagent) == (agent_of(kind), path, False)
    assert file.size_bytes == path.stat().st_size


@pytest.mark.parametrize("kind", HOMES)
def test_the_newest_session_of_the_folder_wins_over_a_newer_one_of_another_folder(home, kind) -> None:
    write_session(home, kind, Path("/code/ledger"), "oldest", age_s=300)
    own = write_session(home, kind, Path("/code/ledger"), "own", age_s=200)
    write_session(home, kind, Path("/code/ledger2"), "longer-name", age_s=100)
    newer = write_session(home, kind, Path("/work"), "above", age_s=50)

    here = newest((agent_of(kind),), Path("/code/ledger"), env(home))
    elsewhere = newest((agent_of(kind),), Path("/nowhere"), env(home))

    assert here is not None
    assert here.path == own
    assert elsewhere is not None
    assert elsewhere.path == newer


def test_the_newest_session_of_all_agents_is_first(home) -> None:
    ages = {kind: 100 * number for number, kind in enumerate(HOMES, start=1)}
    paths = [write_session(home, kind, Path("/work"), age_s=ages[kind]) for kind in HOMES]

    assert found(home) == paths
    assert [one.path for one in files_of_folder(find_files(env(home)), Path("/work"), env(home))] == paths


def test_a_file_of_a_sub_agent_is_marked_and_is_never_the_newest(home) -> None:
    folder = Path("/code/ledger")
    claude = write_session(home, "claude-code", folder, age_s=500)
    write_session(home, "claude-code", folder, "agent-1", age_s=10)
    nested = claude.parent / "a" / "subagents" / "agent-2.jsonl"
    nested.parent.mkdir(parents=True)
    nested.write_text("{}\n")
    opencode = write_session(home, "opencode", folder, age_s=600)
    child = write_session(home, "opencode", folder, "child")
    child.write_text(json.dumps({**json.loads(child.read_text()), "parentID": "a"}, indent=2))
    cline = write_session(home, "cline", folder, age_s=700)
    cline.with_name("helper.messages.json").write_text("{}")

    files = find_files(env(home))

    assert [file.path for file in files if not file.is_subagent] == [claude, opencode, cline]
    assert len(files) == 7
    for agent, path in (("claude-code", claude), ("opencode", opencode), ("cline", cline)):
        chosen = newest((agent,), folder, env(home))
        assert chosen is not None
        assert chosen.path == path


def test_a_prompt_that_quotes_the_mark_of_a_sub_agent_is_no_sub_agents_session(home) -> None:
    write_session(home, "opencode", Path("/work"), prompt='What is "parentID": "x" for?')

    (file,) = find_files(env(home))

    assert not file.is_subagent


def test_an_opencode_session_is_as_new_as_its_newest_message(home) -> None:
    first = write_session(home, "opencode", Path("/work"), "first", age_s=1000)
    second = write_session(home, "opencode", Path("/work"), "second", age_s=500)
    (first.parents[2] / "message" / "first" / "msg_9.json").write_text("{}")

    assert found(home) == [first, second]


@pytest.mark.parametrize(
    ("variable", "kind", "inside"),
    [
        ("CLAUDE_CONFIG_DIR", "claude-code", ".claude"),
        ("CODEX_HOME", "codex", ".codex"),
        ("GEMINI_CLI_HOME", "gemini-cli", "."),
        ("PI_CODING_AGENT_DIR", "pi", ".pi/agent"),
        ("XDG_DATA_HOME", "opencode", ".local/share"),
        ("CLINE_DIR", "cline", ".cline"),
        ("CLINE_DATA_DIR", "cline", ".cline/data"),
        ("CLINE_SESSION_DATA_DIR", "cline", ".cline/data/sessions"),
        ("XDG_CONFIG_HOME", "cline-extension", ".config"),
    ],
)
def test_a_variable_of_the_agent_says_where_its_files_are(tmp_path, home, variable, kind, inside) -> None:
    moved = tmp_path / "moved"
    path = write_session(moved, kind, Path("/work"))
    write_session(home, kind, Path("/work"))

    assert found(home, **{variable: moved / inside}) == [path]


@pytest.mark.parametrize(
    "above",
    [
        ".config/Cursor",
        ".config/Code - Insiders",
        ".vscode-server/data",
        "Library/Application Support/Code",
        "Library/Application Support/VSCodium",
    ],
)
def test_clines_extension_is_found_in_other_editors_and_on_macos(home, above) -> None:
    written = write_session(home, "cline-extension", Path("/work"))
    moved = home / above / EXTENSION.removeprefix(".config/Code/")
    moved.parent.mkdir(parents=True)
    (home / EXTENSION).rename(moved)

    assert found(home) == [moved / "a" / written.name]


def test_clines_earlier_command_line_kept_its_tasks_like_the_extension(home) -> None:
    written = write_session(home, "cline-extension", Path("/work"))
    moved = home / ".cline" / "data" / "tasks"
    moved.parent.mkdir(parents=True)
    (home / EXTENSION).rename(moved)

    assert found(home) == [moved / "a" / written.name]


def test_what_cannot_be_read_is_left_out(home) -> None:
    good = write_session(home, "claude-code", Path("/work"))
    project = good.parent
    (project / "dangling.jsonl").symlink_to(home / "none")
    (project / "loop").symlink_to(project / "loop")
    (project / "folder.jsonl").mkdir()
    os.mkfifo(project / "pipe.jsonl")
    for name in (".codex", ".gemini", ".pi", ".cline", ".local"):
        (home / name).write_text("a file, not a folder")
    closed = write_session(home, "claude-code", Path("/closed")).parent
    closed.chmod(0)

    try:
        paths = found(home)
    finally:
        closed.chmod(0o755)

    # The administrator can read every folder.
    assert [path for path in paths if path.parent != closed] == [good]
    assert os.geteuid() == 0 or len(paths) == 1


def test_folders_that_are_links_are_followed(tmp_path, home) -> None:
    path = write_session(tmp_path / "disk", "claude-code", Path("/work"))
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "projects").symlink_to(path.parents[1])

    assert found(home) == [home / ".claude" / "projects" / "-work" / "a.jsonl"]
    chosen = newest(AGENTS, Path("/work"), env(home))
    assert chosen is not None
    assert chosen.path.name == "a.jsonl"


def test_among_thousands_of_files_the_newest_of_the_folder_is_found(home) -> None:
    projects = home / ".claude" / "projects"
    for project in range(60):
        (projects / f"-code-p{project}").mkdir(parents=True)
        for number in range(50):
            file = projects / f"-code-p{project}" / f"{number}.jsonl"
            file.write_text("{}\n")
            set_age(file, 100 * project + number)

    chosen = newest(AGENTS, Path("/code/p59"), env(home))

    assert len(find_files(env(home))) == 3000
    assert chosen is not None
    assert chosen.path == projects / "-code-p59" / "0.jsonl"


def test_of_codex_only_the_newest_headers_are_read(home) -> None:
    own = write_session(home, "codex", Path("/work"), "own", age_s=9000)
    for number in range(MAX_HEADERS_READ - 1):
        write_session(home, "codex", Path("/other"), f"n{number}", age_s=number + 1)
    within = newest(AGENTS, Path("/work"), env(home))
    write_session(home, "codex", Path("/other"), "one-more", age_s=500)
    beyond = newest(AGENTS, Path("/work"), env(home))

    assert within is not None
    assert beyond is not None
    assert (within.path == own, beyond.path == own) == (True, False)


def test_a_damaged_header_is_passed_over(home) -> None:
    file = write_session(home, "codex", Path("/work"))
    file.write_bytes(b'{"type": "session_meta", "payload": {"cwd\n[1]\n{"payload": 7}\n' + file.read_bytes())

    assert list(files_of_folder(find_files(env(home)), Path("/work"), env(home)))
    assert not list(files_of_folder(find_files(env(home)), Path("/wor"), env(home)))


def test_opencodes_database_is_noticed_and_not_listed(home) -> None:
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    before = uses_database(env(home))
    (folder / "opencode.db").write_bytes(b"SQLite format 3\0")

    assert (before, uses_database(env(home)), found(home)) == (False, True, [])


def test_transcripts_in_the_store_for_the_agent_sdk_are_claude_codes(home) -> None:
    folder = home / "work"
    store = home / "data" / SDK_TRANSCRIPTS / file_stem(project_name("claude-code", str(folder)))
    session = store / f"{file_stem('5f0e0f0c-0000-4000-8000-000000000000')}.jsonl"
    sub = store / session.stem / "subagents" / f"agent-{file_stem('subagents/agent-1')}.jsonl"
    for path in (session, sub):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"type":"compactd-session-store"}\n')
    environ = env(home, COMPACTD_HOME=home / "data")
    files = {file.path: file.is_subagent for file in find_files(environ)}
    assert files == {session: False, sub: True}
    assert {file.path for file in files_of_folder(find_files(environ), folder, environ)} == {session, sub}
    assert list(files_of_folder(find_files(environ), home / "other", environ)) == []
    # A session that compactd writes for Claude Code never goes into the store.
    place = place_of("claude-code", "new", str(folder), session, environ)
    assert place is not None
    assert place.is_relative_to(home / ".claude" / "projects")
