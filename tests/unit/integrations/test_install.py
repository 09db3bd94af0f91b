"""`install` changes only what it must in an agent's settings, and `uninstall` restores them byte for byte."""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from compactd import __version__
from compactd.integrations.hooks.install import CannotChange, _record_of, install, uninstall
from compactd.integrations.hooks.settings_change import (
    EVENTS,
    TOOL_EVENT,
    TOOL_MATCHER,
    WantedHooks,
    add_hooks,
    settings_path,
    without_hooks,
)
from compactd.integrations.hooks.settings_text import at_path, parse, without_member
from tests.support.agent_transcripts import AGENTS
from tests.support.command_line import run
from tests.support.examples import examples
from tests.unit.integrations.settings_files import BROKEN, IGNORED, ODD

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


SHAPES = ("claude-code", "gemini-cli")
"""Codex's hooks have Claude Code's shape."""


def plain(text: str) -> object:
    """Parse JSON with comments and trailing commas, by other code than compactd's."""
    bare = _COMMENT.sub(lambda m: m[1] or " ", text.lstrip("\ufeff"))
    bare = _TRAILING.sub(lambda m: m[1] or "", bare)
    return json.loads(bare) if bare.strip() else {}


def wanted(agent: str) -> WantedHooks:
    return WantedHooks(agent, "/opt/my tools/bin/compactd".replace(" ", "-"))


def environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "COMPACTD_HOME": str(home / "data")}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("name", ODD)
def test_install_then_uninstall_leaves_every_byte(agent: str, name: str, tmp_path: Path) -> None:
    path = settings_path(agent, environ(tmp_path))
    path.parent.mkdir()
    before = ODD[name].encode()
    path.write_bytes(before)

    install(path, wanted(agent), environ(tmp_path))
    between = path.read_bytes()
    uninstall(path, agent, environ(tmp_path))

    assert path.read_bytes() == before
    assert between != before


@pytest.mark.parametrize("agent", SHAPES)
@pytest.mark.parametrize("name", ODD)
def test_all_that_was_there_is_there_still_and_the_hooks_are(agent: str, name: str) -> None:
    text, _ = add_hooks(ODD[name], wanted(agent))

    before, after = plain(ODD[name]), plain(text)
    ours = {event: after["hooks"][event][-1]["hooks"][0]["command"] for event in EVENTS[agent]}
    assert ours == dict.fromkeys(EVENTS[agent], f"/opt/my-tools/bin/compactd hook {agent}")
    for event in EVENTS[agent]:
        del after["hooks"][event][-1]
        if not after["hooks"][event] and event not in before.get("hooks", {}):
            del after["hooks"][event]
    if "hooks" not in before and not after["hooks"]:
        del after["hooks"]
    if "statusLine" not in before:
        after.pop("statusLine", None)
    assert after == before


@pytest.mark.parametrize("name", ODD)
def test_what_is_not_ours_stays_where_it_was(name: str) -> None:
    text, _ = add_hooks(ODD[name], wanted("claude-code"))

    rest = iter(text)
    assert all(char in rest for char in ODD[name])


@pytest.mark.parametrize("agent", SHAPES)
@pytest.mark.parametrize("name", ODD)
def test_what_was_changed_since_stays_when_ours_goes(agent: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(ODD[name], newline="")
    install(path, wanted(agent), environ(tmp_path))
    text = path.read_bytes().decode()
    end = text.rindex("}") if "// behind" not in text else text.index("}\n// behind")
    cut = text[:end].rstrip()
    comma = "" if parse(text).members[-1].comma >= 0 else ","
    if cut.endswith(("// the end", "// fast")):
        cut += "\n"
    added = f'{cut}{comma}\n  "later": [1]\n{text[end:]}'
    path.write_bytes(added.encode())

    uninstall(path, agent, environ(tmp_path))

    assert plain(path.read_bytes().decode()) == {**plain(ODD[name]), "later": [1]}


@pytest.mark.parametrize("agent", SHAPES)
@pytest.mark.parametrize("name", BROKEN)
def test_settings_that_cannot_be_read_are_refused_and_stay(agent: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(BROKEN[name])

    with pytest.raises(CannotChange):
        install(path, wanted(agent), environ(tmp_path))

    assert path.read_text() == BROKEN[name]


@pytest.mark.parametrize("agent", AGENTS)
def test_installing_twice_changes_nothing_the_second_time(agent: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"model": "x"}')
    install(path, wanted(agent), environ(tmp_path))
    once = path.read_bytes()

    again = install(path, wanted(agent), environ(tmp_path))
    uninstall(path, agent, environ(tmp_path))

    assert (again.is_needed, once == again.after, path.read_text()) == (False, True, '{"model": "x"}')


@pytest.mark.parametrize("agent", AGENTS)
def test_where_there_were_no_settings_there_are_none_afterwards(agent: str, tmp_path: Path) -> None:
    path = settings_path(agent, environ(tmp_path))

    install(path, wanted(agent), environ(tmp_path))
    mode = path.stat().st_mode & 0o777
    uninstall(path, agent, environ(tmp_path))

    assert (mode, path.exists(), path.parent.exists()) == (0o600, False, False)


def test_a_link_stays_a_link_and_the_file_behind_it_keeps_its_mode(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}\n")
    real.chmod(0o640)
    link = tmp_path / "settings.json"
    link.symlink_to(real)

    install(link, wanted("claude-code"), environ(tmp_path))
    between = (link.is_symlink(), "compactd" in real.read_text(), real.stat().st_mode & 0o777)
    uninstall(link, "claude-code", environ(tmp_path))

    assert between == (True, True, 0o640)
    assert (link.is_symlink(), real.read_text(), real.stat().st_mode & 0o777) == (True, "{}\n", 0o640)


def test_a_link_to_nothing_and_one_to_itself(tmp_path: Path) -> None:
    nowhere, itself = tmp_path / "nowhere.json", tmp_path / "itself.json"
    nowhere.symlink_to(tmp_path / "missing.json")
    itself.symlink_to(itself)

    install(nowhere, wanted("codex"), environ(tmp_path))
    uninstall(nowhere, "codex", environ(tmp_path))

    assert (nowhere.is_symlink(), (tmp_path / "missing.json").exists()) == (True, False)
    with pytest.raises(CannotChange):
        install(itself, wanted("codex"), environ(tmp_path))


@pytest.mark.parametrize("kind", ["read-only", "folder", "no UTF-8"])
def test_what_cannot_be_changed_is_left_alone(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"{}" if kind == "read-only" else b'{"a": "\xff"}')
        path.chmod(0o444 if kind == "read-only" else 0o644)

    with pytest.raises(CannotChange):
        install(path, wanted("gemini-cli"), environ(tmp_path))

    assert path.is_dir() or path.read_bytes() in (b"{}", b'{"a": "\xff"}')
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_a_status_line_of_the_users_own_stays(tmp_path: Path) -> None:
    text, notes = add_hooks(ODD["own status line"], wanted("claude-code"))

    assert plain(text)["statusLine"]["command"] == "~/line.sh"
    assert notes == ("the settings already have a status line; it was not changed",)


@pytest.mark.parametrize("name", ODD)
def test_a_file_that_claude_code_would_ignore_is_told(name: str) -> None:
    notes = add_hooks(ODD[name], wanted("claude-code"))[1]

    assert any("ignores this file" in note for note in notes) == (name in IGNORED)
    assert not any("ignores" in note for note in add_hooks(ODD[name], wanted("gemini-cli"))[1])


def test_uninstalling_what_was_never_installed_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(ODD["own hooks in all events"])

    assert not uninstall(path, "claude-code", environ(tmp_path), dry_run=True).is_needed
    assert not uninstall(tmp_path / "missing.json", "codex", environ(tmp_path), dry_run=True).is_needed
    assert not (tmp_path / "data").exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
GROUP = st.fixed_dictionaries({"hooks": st.just([{"type": "command", "command": "x"}])})
HOOKS = st.dictionaries(st.sampled_from(["Stop", "SessionStart", "PreToolUse"]), st.lists(GROUP, max_size=2))


@settings(deadline=None, max_examples=examples(50))
@given(
    members=st.dictionaries(st.text(max_size=5).filter(lambda key: key not in ("hooks", "statusLine")), JSON),
    hooks=st.none() | HOOKS,
    indent=st.sampled_from([None, 2, 4, "\t"]),
    agent=st.sampled_from(AGENTS),
)
def test_taking_out_what_was_put_in_gives_the_same_settings(
    members: dict, hooks: dict | None, indent: object, agent: str
) -> None:
    before = json.dumps(members if hooks is None else {**members, "hooks": hooks}, indent=indent)

    text, _ = add_hooks(before, wanted(agent))

    assert json.loads(without_hooks(text, before)) == json.loads(before)
    assert parse(text).end <= len(text)


def test_the_commands_show_what_changes_do_it_and_take_it_back(tmp_path: Path) -> None:
    folder = tmp_path / ".claude"
    folder.mkdir()
    path = folder / "settings.json"
    path.write_text('{\n  "model": "opus" // mine\n}\n')
    before = path.read_bytes()

    dry = run(tmp_path, "install", "claude-code", "--dry-run")
    unchanged = path.read_bytes()
    done = run(tmp_path, "install", "claude-code")
    shown = json.loads(run(tmp_path, "install", "claude-code", "--dry-run", "--json").out)
    back = run(tmp_path, "uninstall", "claude-code")
    nothing = run(tmp_path, "uninstall", "claude-code")

    assert (dry.code, done.code, back.code, nothing.code) == (0, 0, 0, 3)
    assert (unchanged, path.read_bytes()) == (before, before)
    assert '+  "hooks": {' in dry.lines
    assert " hook claude-code" in dry.out
    assert (shown["changed"], shown["diff"]) == (False, "")


def test_trust_is_explained_and_never_given(tmp_path: Path) -> None:
    done = run(tmp_path, "install", "codex")

    assert "trust" in done.words
    assert sorted(one.name for one in (tmp_path / ".codex").iterdir()) == ["hooks.json"]
    assert "trust" not in (tmp_path / ".codex" / "hooks.json").read_text()


def test_settings_that_cannot_be_changed_are_told_in_two_lines(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text("{,}")

    ended = run(tmp_path, "install", "gemini-cli", "--settings", path)

    assert ended.code == 1
    assert "line 1" in ended.err
    assert "Nothing was changed." in ended.err
    assert [one.name for one in tmp_path.iterdir()] == ["odd.json"]


@pytest.mark.parametrize(
    ("agent", "folder"), [("claude-code", "claude-code"), ("codex", "codex/plugins/compactd")]
)
def test_a_plugin_holds_the_hooks_that_install_writes(agent: str, folder: str) -> None:
    plugin = Path(__file__).parents[3] / "integrations" / folder

    text, _ = add_hooks("{}", WantedHooks(agent, "cd / && compactd", with_statusline=False))

    written = json.loads((plugin / "hooks" / "hooks.json").read_text())
    modules = written.pop("modules", [])
    reducing = written["hooks"].pop(TOOL_EVENT, [])
    assert written == json.loads(text)
    assert [group["matcher"] for group in reducing] == [TOOL_MATCHER] * (agent == "claude-code")
    assert all((plugin / "hooks" / module).is_file() for module in modules)
    manifests = [json.loads(path.read_text()) for path in plugin.glob(".*-plugin/plugin.json")]
    assert [(one["name"], one["version"]) for one in manifests] == [("compactd", __version__)]


OLD_LINES = {
    "/opt/venv/bin/python -m compactd hook claude-code": "{} hook claude-code",
    "'/opt/my venv/bin/python3' -m compactd hook claude-code --limit 5": "{} hook claude-code --limit 5",
    "env A=1 compactd hook claude-code": "env A=1 {} hook claude-code",
    "compactd hook claude-code": "{} hook claude-code",
    "/opt/venv/bin/python -P -m compactd hook claude-code": None,
    "/opt/venv/bin/python -I -m compactd hook claude-code": None,
    "/usr/local/bin/compactd hook claude-code --limit 500": None,
    "'/opt/my venv/bin/compactd' hook claude-code": None,
}
"""A command as it was, and as it is after `install`; None for one that stays."""


@pytest.mark.parametrize("line", OLD_LINES)
def test_an_old_line_that_could_import_from_the_project_is_rewritten_and_taken_back(
    line: str, tmp_path: Path
) -> None:
    path = tmp_path / "settings.json"
    group = {"hooks": [{"type": "command", "command": line, "timeout": 3}]}
    path.write_text(json.dumps({"hooks": {"Stop": [group]}, "model": "x"}, indent=2))
    before = path.read_bytes()

    change = install(path, wanted("claude-code"), environ(tmp_path))
    after = json.loads(path.read_text())["hooks"]["Stop"]
    again = install(path, wanted("claude-code"), environ(tmp_path))
    uninstall(path, "claude-code", environ(tmp_path))

    becomes = line if OLD_LINES[line] is None else OLD_LINES[line].format("/opt/my-tools/bin/compactd")
    assert after == [{"hooks": [{"type": "command", "command": becomes, "timeout": 3}]}]
    assert [bool(change.notes), again.is_needed] == [OLD_LINES[line] is not None, False]
    assert path.read_bytes() == before


def test_a_program_inside_a_project_is_told_when_its_hooks_are_installed(tmp_path: Path) -> None:
    """These tests run with the Python of a checkout, which may belong to the agent itself."""
    shown = run(tmp_path, "install", "claude-code", "--dry-run", "--json").json

    script = Path(sys.executable).with_name("compactd")
    checkout = Path(__file__).parents[3]
    is_inside = checkout in script.parents
    assert any(f"{script} is inside the project" in note for note in shown["notes"]) == is_inside


@pytest.mark.parametrize("agent", AGENTS)
def test_no_value_of_the_settings_is_kept_and_all_of_them_come_back(agent: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    before = '{"a": "sk-live-KEY", "hooks": {"Stop": [{"hooks": []}]}, "b": "sk-live-KEY"}'
    path.write_text(before)

    install(path, wanted(agent), environ(tmp_path))
    kept = (tmp_path / "data" / "hooks" / f"{agent}.installed").read_bytes()
    uninstall(path, agent, environ(tmp_path))

    assert set(json.loads(kept)) <= {"path", "was_there", "digest", "ours", "commands", "events"}
    assert (b"sk-live" in kept, path.read_text()) == (False, before)


OLD = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "compactd hook codex"}]}]}}'


@pytest.mark.parametrize("before", [None, '{"model": "x"}', OLD])
def test_what_an_earlier_version_kept_of_the_settings_is_given_back(
    before: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "settings.json"
    after = add_hooks(before or "", wanted("codex"))[0]
    path.write_text(after)
    kept = tmp_path / "data" / "hooks" / "codex.installed"
    kept.parent.mkdir(parents=True)
    coded = [None if one is None else base64.b64encode(one.encode()).decode() for one in (before, after)]
    kept.write_text(json.dumps({"path": str(path), "before": coded[0], "after": coded[1], "folders": []}))

    uninstall(path, "codex", environ(tmp_path))

    assert (path.read_text() if path.exists() else None) == before
    assert not kept.exists()


def steering_flags(text: str) -> list[tuple[str, bool]]:
    """Return the events whose command does, or does not, say what a summary must contain."""
    hooks = json.loads(text)["hooks"]
    commands = [(event, group["hooks"][0]["command"]) for event, groups in hooks.items() for group in groups]
    return [(event, command.endswith(" hook claude-code --no-steer")) for event, command in commands]


def test_steering_is_switched_off_at_one_event_and_on_again_and_uninstalled(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{\n   "model": "opus"\n}\n\n')
    before = path.read_bytes()
    flags, texts = [], []
    for options in ((), ("--no-steer",), (), ("--steer",)):
        run(tmp_path, "install", "claude-code", *options)
        flags.append(dict(steering_flags(path.read_text())))
        texts.append(path.read_bytes())

    wrong = run(tmp_path, "install", "claude-code", "--steer", "--no-steer")
    run(tmp_path, "uninstall", "claude-code")

    assert [one["PreCompact"] for one in flags] == [False, True, True, False]
    assert [event for one in flags for event, off in one.items() if off and event != "PreCompact"] == []
    assert (texts[0], texts[1]) == (texts[3], texts[2])
    assert wrong.code == 1
    assert path.read_bytes() == before


def test_steering_that_is_off_from_the_start_is_uninstalled_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"hooks":{"PreCompact":[{"hooks":[{"type":"command","command":"own"}]}]}}')
    before = path.read_bytes()

    run(tmp_path, "install", "claude-code", "--no-steer")
    flags = steering_flags(path.read_text())
    run(tmp_path, "uninstall", "claude-code")

    assert [off for event, off in flags if event == "PreCompact"] == [False, True]
    assert path.read_bytes() == before


def reducing_commands(text: str) -> list[str]:
    """Return the commands at the event of a tool's output, without their program."""
    groups = json.loads(text)["hooks"].get(TOOL_EVENT, [])
    commands = [hook["command"] for group in groups for hook in group["hooks"]]
    return [command.partition(" hook ")[2] or command for command in commands]


def test_the_reduction_of_tool_output_is_off_until_it_is_wanted_and_off_again(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    own = {"matcher": "Write", "hooks": [{"type": "command", "command": "own"}]}
    path.write_text(json.dumps({"hooks": {TOOL_EVENT: [own]}, "model": "opus"}, indent=3) + "\n\n")
    before = path.read_bytes()
    found = []
    for options in (
        (),
        ("--reduce",),
        (),
        ("--reduce", "--level", "strong", "--observe"),
        ("--reduce", "--level", "light"),
        ("--no-reduce",),
        ("--reduce",),
    ):
        run(tmp_path, "install", "claude-code", *options)
        found.append(reducing_commands(path.read_text())[1:])
    groups = json.loads(path.read_text())["hooks"][TOOL_EVENT]

    run(tmp_path, "uninstall", "claude-code")

    reduce = "claude-code --reduce"
    assert found == [
        [],
        [f"{reduce} default"],
        [f"{reduce} default"],
        [f"{reduce} strong --observe"],
        [f"{reduce} light"],
        [],
        [f"{reduce} default"],
    ]
    assert groups[0] == own
    assert groups[1]["matcher"] == TOOL_MATCHER
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ODD)
def test_odd_settings_with_the_reduction_come_back_byte_for_byte(name: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    before = ODD[name].encode()
    path.write_bytes(before)
    told = replace(wanted("claude-code"), reduction="--reduce default")

    install(path, wanted("claude-code"), environ(tmp_path))
    added = install(path, told, environ(tmp_path))
    again = install(path, told, environ(tmp_path))
    uninstall(path, "claude-code", environ(tmp_path))

    assert (added.is_needed, again.is_needed) == (True, False)
    assert b"--reduce default" in (added.after or b"")
    assert path.read_bytes() == before


def test_hooks_that_were_added_after_a_change_by_the_user_go_too(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "model": "opus"\n}\n')
    run(tmp_path, "install", "claude-code")
    path.write_text(path.read_text().replace("opus", "sonnet"))
    run(tmp_path, "install", "claude-code", "--reduce")

    run(tmp_path, "uninstall", "claude-code")

    assert path.read_text() == '{\n  "model": "sonnet"\n}\n'


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("codex", "--reduce"), "codex/issues/38135"),
        (("gemini-cli", "--reduce"), "Tool result blocked"),
        (("claude-code", "--level", "strong"), "need --reduce"),
        (("claude-code", "--observe"), "need --reduce"),
        (("claude-code", "--reduce", "--no-reduce"), "exclude each other"),
        (("claude-code", "--no-reduce", "--observe"), "need --reduce"),
    ],
)
def test_a_reduction_that_is_not_possible_changes_nothing(
    arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    ended = run(tmp_path, "install", *arguments)

    assert ended.code == 1
    assert says in " ".join(ended.err.split())
    assert not any((tmp_path / name).exists() for name in (".claude", ".codex", ".gemini"))


def test_an_installation_of_an_earlier_release_gets_the_new_event(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "model": "opus"\n}\n')
    before = path.read_bytes()
    told = wanted("claude-code")
    install(path, told, environ(tmp_path))
    hooks = at_path(parse(path.read_text()), ("hooks",))
    assert hooks is not None
    event = hooks.find("SubagentStop")
    assert event is not None
    older = without_member(path.read_text(), hooks, event).encode()
    path.write_bytes(older)
    record = _record_of(path, (), before, older, told)
    kept = tmp_path / "data" / "hooks" / "claude-code.installed"
    kept.write_bytes(msgspec.json.encode(record))

    change = install(path, told, environ(tmp_path))
    now = json.loads(path.read_text())["hooks"]
    uninstall(path, "claude-code", environ(tmp_path))

    assert change.is_needed
    assert set(now) == set(EVENTS["claude-code"])
    assert all(len(groups) == 1 for groups in now.values())
    assert path.read_bytes() == before
