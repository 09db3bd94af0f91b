"""Files of a wrong kind, cut off, too large or unreadable, and a folder of files."""

from __future__ import annotations

import json
import os
import re
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.formats.files.detect import read
from compactd.formats.files.directory_session import gather
from compactd.formats.files.source import FILE_BYTES, read_source
from compactd.formats.files.write import write
from compactd.protocol.errors import CompactdError, FormatNotSupported, InvalidParams, LimitExceeded
from tests.support.examples import examples
from tests.unit.formats.outlined import FIXTURES, outline

LINES = ("codex.jsonl", "gemini-cli.jsonl", "klaude.jsonl", "opal.jsonl")
DOCUMENTS = ("cline-task.json", "opencode.json", "openhands.json", "openhands-v0.json", "roo.json")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"SQLite format 3\0" + bytes(100), "opencode export"),
        (b"\0\0\0\x20\x00\xab\xcd\xef" + bytes(40), "Erlang table"),
        (b"\x1f\x8b\x08\0\0", "gzip"),
        (b"PK\x03\x04\0\0", "zip"),
        (b"\x28\xb5\x2f\xfd\0", "zstd"),
        (b"\x7fELF\0\0\0", "binary"),
        (b"<!doctype html><p>hello", "HTML"),
    ],
)
def test_a_file_of_the_wrong_kind_is_refused_with_what_it_is(data: bytes, what: str) -> None:
    with pytest.raises(FormatNotSupported, match=what):
        read(data)


@pytest.mark.parametrize("name", DOCUMENTS)
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_a_document_cut_at_any_byte_is_read_up_to_its_last_whole_message(
    name: str, data: st.DataObject
) -> None:
    whole = (FIXTURES / name).read_bytes()
    at = data.draw(st.integers(len(whole) // 2, len(whole) - 3))
    expected = outline(read(whole))

    try:
        file = read(whole[:at])
    except CompactdError:
        return  # not one message was whole, or nothing told any more who wrote it

    seen = outline(file)
    assert len(seen) <= len(expected)
    assert [line.partition(":")[0] for line in seen] == [
        line.partition(":")[0] for line in expected[: len(seen)]
    ]
    assert any("cut off" in warning for warning in file.warnings)


@pytest.mark.parametrize("name", [*LINES, *DOCUMENTS])
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_no_damage_makes_a_reader_fail_otherwise_than_by_a_clear_refusal(
    name: str, data: st.DataObject
) -> None:
    whole = bytearray((FIXTURES / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))

    try:
        file = read(bytes(whole))
    except (FormatNotSupported, InvalidParams, LimitExceeded):
        return

    assert all(message.role in ("user", "assistant", "tool", "system") for message, _ in file.messages)


@pytest.mark.parametrize("name", LINES)
def test_a_file_cut_in_the_middle_of_a_character_keeps_what_stands_before(name: str) -> None:
    lines = (FIXTURES / name).read_bytes().splitlines(keepends=True)
    torn = b"".join(lines) + lines[-1].replace(b'"', "\u00e9\u4e2d".encode(), 1)[:-3] + b"\xe4\xb8"

    file = read(torn)

    assert any("cut off" in warning for warning in file.warnings)
    assert len(file.messages) >= len(read(b"".join(lines)).messages) - 1


def test_what_a_newer_version_writes_is_passed_over_and_named() -> None:
    newer = (
        FIXTURES / "codex.jsonl"
    ).read_bytes() + b'{"timestamp":"2027-01-01T00:00:00Z","type":"hologram","payload":{}}\n'

    file = read(newer)

    assert "1 × record of the unknown type 'hologram': left out" in file.warnings
    assert len(file.messages) == 10


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.jsonl"
    with huge.open("wb") as file:
        file.truncate(2 * 1024**3)

    with pytest.raises(LimitExceeded) as caught:
        read_source(huge)

    assert caught.value.data == {"limit_bytes": FILE_BYTES, "size_bytes": 2 * 1024**3}


def test_what_is_no_file_to_read_is_refused_with_why(tmp_path: Path) -> None:
    loop, other, pipe = tmp_path / "loop", tmp_path / "other", tmp_path / "pipe"
    loop.symlink_to(other)
    other.symlink_to(loop)
    os.mkfifo(pipe)

    said = []
    for path in (loop, pipe, tmp_path, tmp_path / "missing", Path("nul\0byte")):
        with pytest.raises(InvalidParams) as caught:
            read_source(path)
        said.append(caught.value.message)

    assert "Too many levels of symbolic links" in said[0]
    assert ["is not a regular file" in text for text in said[1:3]] == [True, True]
    assert "no such file" in said[3]
    assert "this is not a valid file name" in said[4]


NOBODY = 65534
"""A user who owns nothing; the superuser may read everything."""


def test_a_file_that_may_not_be_read_is_refused_with_why(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("{}")
    secret.chmod(0)
    user = os.geteuid()
    os.seteuid(NOBODY if user == 0 else user)

    try:
        with pytest.raises(InvalidParams, match="Permission denied"):
            read_source(secret)
    finally:
        os.seteuid(user)


def test_opencodes_folder_of_files_is_read_from_the_sessions_own(tmp_path: Path) -> None:
    whole = json.loads((FIXTURES / "opencode.json").read_text())
    storage = tmp_path / "storage"
    session = storage / "session" / "p1" / "ses_1.json"
    for path, value in [
        (session, whole["info"]),
        *((storage / "message" / "ses_1" / f"{m['info']['id']}.json", m["info"]) for m in whole["messages"]),
        *(
            (storage / "part" / part["messageID"] / f"{part['id']}.json", part)
            for m in whole["messages"]
            for part in m["parts"]
        ),
    ]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    (storage / "message" / "ses_1" / "msg_9.json").write_text('{"id":"../../secret"')
    (storage / "message" / "ses_1" / "loop.json").symlink_to("loop.json")

    file = read(session)

    assert (file.format, outline(file)) == (
        "opencode",
        outline(read((FIXTURES / "opencode.json").read_bytes())),
    )


def test_openhands_folder_of_events_is_read_from_any_of_them(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    for number, event in enumerate(json.loads((FIXTURES / "openhands.json").read_text())):
        (events / f"event-{number:05d}-{event['id']}.json").write_text(json.dumps(event))

    file = read(events / "event-00003-e3.json")

    assert outline(file) == outline(read((FIXTURES / "openhands.json").read_bytes()))


def test_a_name_that_leads_out_of_the_storage_is_not_followed(tmp_path: Path) -> None:
    session = tmp_path / "storage" / "session" / "p1" / "ses.json"
    session.parent.mkdir(parents=True)
    data = json.dumps({"id": "../../../etc", "projectID": "p1", "time": {}}).encode()
    session.write_bytes(data)

    assert gather(session, data) == data


@pytest.mark.parametrize("digits", [5_000, 300], ids=["more than an int takes", "more than a place has"])
@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir() if path.is_file()))
def test_no_number_however_long_makes_a_reader_fail_otherwise_than_by_a_clear_refusal(
    name: str, digits: int
) -> None:
    whole = (FIXTURES / name).read_bytes()
    for found in _one_of_each_kind(whole):
        data = whole[: found.start()] + b"9" * digits + whole[found.end() :]
        with suppress(CompactdError):
            write(read(data), "claude_code")


def _one_of_each_kind(whole: bytes) -> list[re.Match[bytes]]:
    """Numbers with other words before them; each kind of field is tried once."""
    kinds = {bytes(found[1]): found for found in re.finditer(rb"([^\d]{0,12})\d+", whole)}
    return [
        re.compile(rb"\d+").search(whole, found.start(), found.end()) or found for found in kinds.values()
    ]


def test_a_range_of_forgotten_events_costs_what_the_file_holds() -> None:
    whole = (FIXTURES / "openhands-v0.json").read_bytes()
    many = re.sub(rb'("forgotten_events_end_id"): \d+', rb"\1: 9000000", whole)

    tracemalloc.start()
    file = read(many)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert many != whole
    assert most < 5_000_000
    assert file.pinned == ((3, (0,)),)
