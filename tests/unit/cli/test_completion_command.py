"""`compactd completion`: what real shells offer with its script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compactd.client import Client
from tests.support.command_line import environment, run, run_each
from tests.support.terminals import in_terminal

FUNCTION = """
source {script}
for line in "$@"; do
    COMPREPLY=()
    IFS=' ' read -r -a COMP_WORDS <<< "$line"
    [[ $line == *' ' ]] && COMP_WORDS+=("")
    COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
    _compactd_completion compactd
    echo "${{COMPREPLY[@]}}"
done
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A home with sessions, a `compactd` on the path, and a script for each shell."""
    home = tmp_path_factory.mktemp("home")
    with Client(env=environment(home)) as client:
        for session_id in ("ledger-1", "ledger-2", "other"):
            client.call("session/start", {"session_id": session_id})
    (home / "bin").mkdir()
    program = home / "bin" / "compactd"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m compactd "$@"\n')
    program.chmod(0o755)
    shells = ("bash", "zsh", "fish")
    for shell, seen in zip(shells, run_each(home, *(("completion", s) for s in shells)), strict=True):
        assert (seen.code, seen.err) == (0, "")
        (home / f"compactd.{shell}").write_text(seen.out)
    return home


def path_of(place: Path) -> dict[str, str]:
    return {"PATH": f"{place / 'bin'}:{environment(place)['PATH']}"}


def offered_by_bash(place: Path, *lines: str) -> list[list[str]]:
    done = subprocess.run(
        ["bash", "--norc", "-c", FUNCTION.format(script=place / "compactd.bash"), "bash", *lines],
        capture_output=True,
        text=True,
        env=environment(place, path_of(place)),
        cwd=place,
        timeout=60,
        check=False,
    )
    # Outside of a completion, `compopt` has no completion to change.
    assert "Traceback" not in done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_bash_offers_commands_options_choices_sessions_and_models(place) -> None:
    commands, options, formats, sessions, models, provider, deleted = offered_by_bash(
        place,
        "compactd se",
        "compactd compact --keep-",
        "compactd convert a b --to open",
        "compactd search --session led",
        "compactd inspect --model claude-opus-4-5",
        "compactd models --provider anthro",
        "compactd sessions delete o",
    )

    assert commands == ["search", "sessions", "serve"]
    assert options == ["--keep-recent", "--keep-messages"]
    assert {"openai", "opencode"} <= set(formats)
    assert sorted(sessions) == ["ledger-1", "ledger-2"]
    assert "claude-opus-4-5" in models
    assert "anthropic" in provider
    assert deleted == ["other"]


def test_the_script_is_for_the_shell_of_the_environment_unless_one_is_named(tmp_path) -> None:
    told = run(tmp_path, "completion", env={"SHELL": "/usr/bin/fish"})
    none = run(tmp_path, "completion")
    wrong = run(tmp_path, "completion", "tcsh")
    data = run(tmp_path, "completion", "zsh", "--json")

    assert "complete --no-files --command compactd" in told.out
    assert [(one.code, one.out) for one in (none, wrong)] == [(2, ""), (2, "")]
    assert (data.json["shell"], "#compdef compactd" in data.json["script"]) == ("zsh", True)


@pytest.mark.system
def test_fish_offers_commands_and_options(place) -> None:
    script = (
        f"source {place}/compactd.fish; complete -C 'compactd se'; complete -C 'compactd compact --keep-'"
    )

    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        capture_output=True,
        text=True,
        env=environment(place, path_of(place)),
        timeout=60,
        check=False,
    )

    offered = {line.split("\t")[0] for line in done.stdout.splitlines()}
    assert {"search", "sessions", "serve", "--keep-recent", "--keep-messages"} <= offered


@pytest.mark.system
def test_zsh_completes_a_command_where_tab_is_pressed(place) -> None:
    setup = (
        f"autoload -U compinit; compinit -u -d {place}/dump; source {place}/compactd.zsh; PS1='rea''dy> '\n"
    )

    screen = in_terminal(
        place,
        command=["zsh", "-f", "-i"],
        env=path_of(place),
        typed=[("", setup), ("ready> ", "compactd classi\t"), ("classify", "\x15exit\n")],
    )

    assert "compactd classify" in screen.text
