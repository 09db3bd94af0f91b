"""No command writes through a symbolic link at its output path that leads out of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import run
from tests.support.session_files import openai


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim"
    file.write_text("what was there before\n")
    return file


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder from elsewhere, with a session in it."""
    folder = tmp_path / "cloned"
    (folder / ".git").mkdir(parents=True)
    openai(folder / "in.json", 8)
    return folder


WRITING = {
    "compact": ("compact", "in.json", "--target", "2k", "--output", "{}"),
    "convert": ("convert", "in.json", "{}", "--to", "pi"),
    "inspect --html": ("inspect", "in.json", "--html", "{}"),
    "inspect --svg": ("inspect", "in.json", "--svg", "{}"),
    "doctor --repair": ("doctor", "in.json", "--repair", "{}"),
    "conformance --junit": ("conformance", "--only", "framing-lines", "--junit", "{}"),
    "conformance --into": ("conformance", "--list", "--into", "{}"),
}


def ran(place: Path, name: str, target: object, *more: str):
    return run(place, *(word.format(target) for word in WRITING[name]), *more)


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.parametrize("kind", ["a file", "nothing", "a folder above", "a link to a link"])
def test_no_command_writes_through_a_link_that_leads_elsewhere(
    place: Path, victim: Path, name: str, kind: str
) -> None:
    target, reached = place / "out", victim
    if kind == "a file":
        target.symlink_to(victim)
    elif kind == "nothing":
        reached = victim.with_name("not-there")
        target.symlink_to(reached)
    elif kind == "a folder above":
        (place / "build").symlink_to(victim.parent)
        target = place / "build" / victim.name
    else:
        (place / "inner").symlink_to(victim)
        target.symlink_to(place / "inner")

    for given in (target, target.relative_to(place)):
        refused = ran(place, name, given)

        assert refused.code == 2, (given, refused)
        assert str(reached) in refused.err
        assert "give its own path" in refused.err
    assert victim.read_text() == "what was there before\n"
    assert not victim.with_name("not-there").exists()


def test_a_link_that_stays_in_its_folder_and_one_of_the_system_are_followed(place: Path) -> None:
    (place / "latest.jsonl").symlink_to("of-today.jsonl")

    done = ran(place, "convert", "latest.jsonl")
    printed = ran(place, "convert", "/dev/stdout")

    assert (done.code, printed.code) == (0, 0)
    assert (place / "latest.jsonl").is_symlink()
    assert (place / "of-today.jsonl").read_bytes()
    assert '"type":"session"' in printed.out


def test_a_target_outside_the_project_that_is_given_by_its_own_path_is_written(
    place: Path, victim: Path
) -> None:
    done = ran(place, "convert", victim, "--force")

    assert done.code == 0
    assert victim.read_text() != "what was there before\n"
