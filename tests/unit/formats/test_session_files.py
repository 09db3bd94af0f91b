from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.formats.files.detect import detect, read
from compactd.formats.files.json_lines import repair_surrogates
from compactd.formats.files.session_formats import SUPPORTED
from compactd.protocol.errors import FormatNotSupported, InvalidParams
from compactd.protocol.messages import Text
from tests.unit.formats.written import HEADER, USE, claude, lines, messages, pi

# --- lists of messages ------------------------------------------------------------------------------


ASKS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
}
ANSWERS = {"role": "tool", "tool_call_id": "a", "content": "out"}
OPENAI = [{"role": "system", "content": "s"}, {"role": "user", "content": "go"}, ASKS, ANSWERS]


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(OPENAI).encode(),
        json.dumps(OPENAI, indent=2).encode(),
        b"\xef\xbb\xbf" + json.dumps({"model": "gpt", "messages": OPENAI}, indent=1).encode(),
        lines(*OPENAI),
        lines(*OPENAI).rstrip(),
    ],
    ids=["array", "indented", "object", "lines", "no newline"],
)
def test_openai_messages_are_read_from_an_array_an_object_or_lines(data: bytes) -> None:
    file = read(data)

    assert file.format == "openai"
    assert [message.role for message in messages(file)] == ["system", "user", "assistant", "tool"]
    assert file.warnings == ()


def test_anthropic_neutral_and_gemini_lists_are_told_apart() -> None:
    anthropic = {"role": "assistant", "content": [USE]}
    neutral = {"role": "tool", "content": [{"type": "tool_result", "call_id": "a", "content": "out"}]}
    gemini = {"role": "model", "parts": [{"text": "ok"}]}

    assert detect(json.dumps({"system": "s", "messages": [anthropic]}).encode()) == "anthropic"
    assert detect(json.dumps([{"role": "user", "content": "go"}, neutral]).encode()) == "neutral"
    assert detect(json.dumps({"contents": [gemini]}).encode()) == "gemini"
    assert detect(json.dumps([{"role": "user", "content": "go", "entry_id": "e1"}]).encode()) == "neutral"
    assert read(json.dumps({"system": "s", "messages": [anthropic]}).encode()).system_prompt == "s"


def test_a_message_of_a_list_that_cannot_be_read_is_told_and_left_out() -> None:
    file = read(json.dumps([*OPENAI, {"role": "user"}, {"role": "user", "content": "on"}]).encode())

    assert len(messages(file)) == 5
    assert file.warnings == (
        "message 5 was left out: content is missing: give a string or a list of parts"
        " - at `$.messages[4].content`",
    )


# --- compactd's journals ----------------------------------------------------------------------------


def journal(*records: str) -> bytes:
    framed = b""
    for seq, record in enumerate(records):
        body = f'{{"seq":{seq},'.encode() + record.encode()[1:-1]
        framed += body + b',"crc":"%08x"}\n' % crc32(body)
    return framed


JOURNAL = journal(
    '{"type":"session","v":1,"id":"s1","at":1.0,"working_dir":"/repo"}',
    '{"type":"model","at":1.0,"model":"anthropic/opus"}',
    '{"type":"settings","at":1.0,"title":"Loader","system_prompt":"be brief"}',
    '{"type":"message","id":"e1","at":1.0,"tokens":[1,"x"],"message":{"role":"user","content":"a"}}',
    '{"type":"message","id":"e2","parent":"e1","at":1.0,"message":{"role":"user","content":"left"}}',
    '{"type":"leaf","at":1.0,"entry_id":"e1","epoch":2}',
    '{"type":"message","id":"e3","parent":"e1","at":1.0,"message":{"role":"user", "content":"b","x":1}}',
    '{"type":"compaction","id":"e4","parent":"e3","at":1.0,"summary":"S","first_kept":"e3"}',
    '{"type":"message","id":"e5","parent":"e4","at":1.0,"message":{"role":"user","content":"c"}}',
)


def test_our_own_journal_is_read_along_its_path_with_the_clients_bytes() -> None:
    file = read(JOURNAL)

    assert [bytes(raw) for _, raw in file.messages] == [
        b'{"role":"user","content":"a"}',
        b'{"role":"user", "content":"b","x":1}',
        b'{"role":"user","content":"c"}',
    ]
    assert (file.format, file.session_id, file.title, file.model) == (
        "compactd",
        "s1",
        "Loader",
        "anthropic/opus",
    )
    assert (file.working_dir, file.system_prompt, file.compactions) == ("/repo", "be brief", 1)
    assert file.warnings == ()


def test_a_journal_whose_leaf_was_set_back_is_read_to_that_leaf() -> None:
    file = read(JOURNAL[: JOURNAL.index(b'{"seq":6')])

    assert [message.content for message in messages(file)] == [(Text(text="a"),)]


def test_a_damaged_line_of_a_journal_is_told_and_left_out() -> None:
    damaged = JOURNAL.replace(b"Loader", b"Looder").replace(b'"content":"left"', b'"content":"Left"')

    file = read(damaged)

    assert [message.content for message in messages(file)] == [(Text(text=text),) for text in "abc"]
    assert file.title is None
    assert file.warnings == ("line 3 is damaged and was left out", "line 5 is damaged and was left out")


# --- files that are not whole -----------------------------------------------------------------------


WHOLE = {
    "claude-code": lines(*(claude("user", f"u{n}", f"text {n}") for n in range(5))),
    "pi": lines(HEADER, *(pi({"role": "user", "content": f"text {n}"}) for n in range(5))),
    "openai": lines(*({"role": "user", "content": f"text {n}"} for n in range(5))),
    "compactd": JOURNAL,
}


@pytest.mark.parametrize("format", WHOLE)
@given(data=st.data())
def test_a_file_cut_at_any_byte_gives_a_prefix_and_says_so(format: str, data: st.DataObject) -> None:
    whole = WHOLE[format]
    cut = data.draw(st.integers(0, len(whole)))

    file = read(whole[:cut], format)

    texts = [message.content for message in messages(file)]
    if format != "compactd":
        assert texts == [message.content for message in messages(read(whole, format))][: len(texts)]
    torn = whole[:cut].rsplit(b"\n", 1)[-1]
    is_whole_line = whole[cut : cut + 1] in (b"\n", b"")
    assert bool(file.warnings) == (bool(torn) and not is_whole_line)


def test_a_damaged_line_in_the_middle_is_told_and_left_out() -> None:
    file = read(lines(claude("user", "u1", "a")) + b"not json\n[1]\n" + lines(claude("user", "u2", "b")))

    assert [message.id for message in messages(file)] == ["u1", "u2"]
    assert file.warnings == (
        "line 2 is not a JSON object and was left out",
        "line 3 is not a JSON object and was left out",
    )


def test_what_is_no_text_becomes_replacement_characters_with_a_warning() -> None:
    data = (
        lines(claude("user", "u1", "a"))
        + lines(claude("user", "u2", "b")).replace(b'"b"', b'"b\xff"')
        + lines(claude("user", "u3", "c")).replace(b'"c"', b'"c\\ud83d"')
    )

    file = read(data)

    assert [message.content for message in messages(file)] == [
        (Text(text="a"),),
        (Text(text="b\ufffd"),),
        (Text(text="c\ufffd"),),
    ]
    assert file.warnings == (
        "line 2: invalid UTF-8 was replaced by U+FFFD",
        "line 3: a lone surrogate was replaced by U+FFFD",
    )


@pytest.mark.parametrize(
    ("given_text", "mended"),
    [
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\ud83d"', rb'"\ufffd"'),
        (rb'"\ude00\ud83d"', rb'"\ufffd\ufffd"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\\ud83d"', rb'"\\ud83d"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
    ],
)
def test_only_lone_surrogates_are_mended(given_text: bytes, mended: bytes) -> None:
    assert repair_surrogates(given_text) == mended
    json.loads(mended).encode()


# --- files of no known format -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"# a chat\n#### hello\n",
        b"{}",
        b'{"trajectory":[]}',
        b"[1,2]",
        b'{"type":"other"}\n{"type":"other"}\n',
        b"\x00\x01\x02",
        b'{"messages":"none"}',
        b"[" * 100_000,
    ],
)
def test_a_file_of_an_unknown_format_is_refused_with_the_formats_that_are_known(data: bytes) -> None:
    with pytest.raises(FormatNotSupported) as caught:
        read(data)

    assert caught.value.data == {"format": None, "supported": list(SUPPORTED)}


def test_a_format_that_is_not_there_is_refused() -> None:
    with pytest.raises(FormatNotSupported, match="'word'"):
        read(b"{}", "word")


def test_a_named_format_is_not_guessed_again() -> None:
    with pytest.raises(InvalidParams):
        read(b'{"a":1}', "openai")
    assert read(lines(*OPENAI), "pi").messages == ()


def test_a_session_is_read_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(JOURNAL)

    assert read(path) == read(JOURNAL)


@given(st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_a_session_or_an_unknown_format(data: bytes) -> None:
    for format in SUPPORTED:
        try:
            read(data, format)
        except InvalidParams:
            continue
    assert detect(data) in (None, *SUPPORTED)
