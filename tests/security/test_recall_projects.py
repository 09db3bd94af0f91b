"""Recall in one project never returns another project's conversation, through the real MCP server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from compactd.client import Client
from tests.support.command_line import environment, run
from tests.support.mcp_command import Server

SECRET = "hunter2-staging"
TITLE = "Payroll rewrite (confidential)"
PRIVATE = f"The staging DB password is {SECRET}, use it for payroll."
OTHERS = (SECRET, TITLE, "Payroll", "projB", "claude-code:private", "nowhere")
"""Words of other projects. An answer must contain none of them."""


def stored(home: Path, session_id: str, folder: Path | str | None, said: str, title: str = "") -> None:
    more = {} if folder is None else {"working_dir": str(folder)}
    with Client(env=environment(home)) as client:
        client.session_start(session_id=session_id, title=title or session_id, **more)
        client.session_append(session_id=session_id, messages=[{"role": "user", "content": said}])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home of a user with a session of the project `widget` and newer sessions of other
    projects."""
    home = tmp_path_factory.mktemp("home")
    for name in ("widget", "payroll", "empty", "widget/sub"):
        (home / name).mkdir()
    stored(home, "projA", home / "widget", "Look at the password field of widget.")
    stored(home, "claude-code:widget", home / "widget", "Widget's password field is too short.")
    stored(home, "projB-private", home / "payroll", PRIVATE, TITLE)
    stored(home, "claude-code:private", home / "payroll", PRIVATE, TITLE)
    stored(home, "projB-below", home / "widget" / "sub", PRIVATE, TITLE)
    stored(home, "projB-above", home, PRIVATE, TITLE)
    stored(home, "nowhere", None, PRIVATE, TITLE)
    stored(home, "nowhere-relative", ".", PRIVATE, TITLE)
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    with Server(home, folder=home / "widget") as server:
        yield server


ASKED: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("search_history", {"query": "password"}),
    ("search_history", {"query": SECRET}),
    ("expand", {"entry_ids": ["e1"]}),
    ("expand", {}),
    ("context_state", {}),
)
NAMED = ("projB-private", "projB", "claude-code:private", "nowhere", "nope", "")


def leaked(answers: list[str]) -> list[str]:
    return [other for other in OTHERS for answer in answers if other in answer.replace(repr(SECRET), "")]


def test_no_tool_tells_of_another_project_whatever_it_is_asked(server: Server) -> None:
    answers = [server.told(tool, **given) for tool, given in ASKED]

    assert leaked(answers) == []
    assert answers[0].startswith("Words said earlier")
    assert answers[4].startswith("session claude-code:widget")


@pytest.mark.parametrize("named", NAMED)
def test_a_session_that_the_model_names_is_refused_with_the_same_words_whether_it_exists(
    server: Server, named: str
) -> None:
    answers = [server.told(tool, **given, session=named) for tool, given in ASKED]

    assert {answer.split(": ", 2)[2] for answer in answers} == {
        "this server reads the sessions of one project, and the model cannot choose one (no `session`)."
    }
    assert all(answer.startswith("error: ") for answer in answers)


def test_the_tools_offer_no_session_unless_the_user_widened_the_server(server: Server, home: Path) -> None:
    narrow = [tool.input_schema["properties"] for tool in server.tools().values()]
    with Server(home, "--all-projects", folder=home / "widget") as wide_server:
        wide = [tool.input_schema["properties"] for tool in wide_server.tools().values()]
        there = wide_server.told("search_history", query="password", session="projB-private")
        here = wide_server.told("context_state")

    assert ["session" in properties for properties in narrow] == [False] * 3
    assert ["session" in properties for properties in wide] == [True] * 3
    assert SECRET in there
    assert here.startswith("session claude-code:widget")


@pytest.mark.parametrize("options", [(), ("--agent", "claude-code"), ("--agent", "codex")])
def test_a_folder_without_a_session_gets_no_answer_from_the_newest_of_another_one(
    home: Path, options: tuple[str, ...]
) -> None:
    with Server(home, *options, folder=home / "empty") as server:
        answers = [server.told(tool, **given) for tool, given in ASKED]
    fresh = home / "empty" / "fresh"
    fresh.mkdir(exist_ok=True)
    with Server(fresh, *options, folder=home / "empty") as server:
        nothing_stored = [server.told(tool, **given) for tool, given in ASKED]

    assert leaked(answers) == []
    assert all(answer.startswith("error: No session") for answer in answers)
    # Not even whether there are other projects.
    assert answers == nothing_stored


def test_of_one_agent_only_its_own_session_of_this_folder_is_read(home: Path) -> None:
    with Server(home, "--agent", "claude-code", folder=home / "widget") as server:
        own = server.told("context_state")
    with Server(home, "--agent", "codex", folder=home / "widget") as server:
        none = server.told("context_state")

    assert own.startswith("session claude-code:widget")
    assert none.startswith("error: No session")


@pytest.mark.parametrize("folder", ["widget/sub", "."])
def test_a_folder_below_or_above_is_another_project(home: Path, folder: str) -> None:
    with Server(home, folder=home / folder) as server:
        state = server.told("context_state")

    assert state.startswith(f"session projB-{'below' if folder == 'widget/sub' else 'above'}\n")


def test_a_session_with_a_relative_folder_belongs_to_no_folder(home: Path) -> None:
    """Not to the one that the daemon ran in when the session began, either."""
    with Server(home, folder=Path.cwd()) as server:
        state = server.told("context_state")

    assert state.startswith("error: No session")


def test_a_link_to_the_folder_is_the_folder(home: Path) -> None:
    link = home / "link"
    link.symlink_to(home / "widget")
    with Server(home, "--folder", str(link), folder=home / "empty") as server:
        state = server.told("context_state")

    assert state.startswith("session claude-code:widget")


def test_a_link_that_is_turned_round_later_takes_no_session_with_it(tmp_path: Path) -> None:
    for name in ("payroll", "widget"):
        (tmp_path / name).mkdir()
    link = tmp_path / "current"
    link.symlink_to(tmp_path / "payroll")
    stored(tmp_path, "payroll", link, PRIVATE, TITLE)
    link.unlink()
    link.symlink_to(tmp_path / "widget")

    told = []
    for folder in ("widget", "payroll"):
        with Server(tmp_path, folder=tmp_path / folder) as server:
            told.append(server.told("context_state"))

    assert leaked(told[:1]) == []
    assert told[1].startswith("session payroll")


def test_the_user_names_one_session_at_the_start_and_the_whole_id_is_needed_beyond_the_folder(
    home: Path,
) -> None:
    told = {}
    for name in ("nowhere", "nowhere-relative", "projB-private", "projB-priv", "claude-code:wid"):
        with Server(home, "--session", name, folder=home / "widget") as server:
            told[name] = server.told("context_state")

    assert told["nowhere"].startswith("session nowhere\n")
    assert told["nowhere-relative"].startswith("session nowhere-relative\n")
    assert told["projB-private"].startswith("session projB-private\n")
    assert told["claude-code:wid"].startswith("session claude-code:widget")
    assert told["projB-priv"].startswith("error: No session")
    assert leaked([told["projB-priv"].replace("projB-priv", "")]) == []


def test_a_session_and_all_projects_do_not_exclude_each_other(home: Path) -> None:
    ended = run(home, "mcp", "--session", "x", "--folder", "y")
    with Server(home, "--session", "projA", "--all-projects", folder=home / "empty") as server:
        own, other = server.told("context_state"), server.told("context_state", session="projB-private")
        part = server.told("context_state", session="projB-priv")
        unknown = server.told("context_state", session="nobody")

    assert ended.code == 2
    assert own.startswith("session projA")
    assert other.startswith("session projB-private")
    assert part.startswith("session projB-private")
    assert unknown.startswith("error: No session")
