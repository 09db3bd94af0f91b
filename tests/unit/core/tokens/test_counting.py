"""Token counts of texts and messages, estimated without a tokenizer's vocabulary."""

from __future__ import annotations

import base64
import json
import struct
import zlib

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct

from compactd.core.tokens.counting import (
    BLOB_TOKENS,
    Chars4,
    Chars4Utf16,
    ScriptAware,
    blob_tokens,
    family_factor,
    message_tokens,
    system_tokens,
    tool_tokens,
)
from compactd.core.tokens.estimate import estimate
from compactd.core.tokens.image_rules import ANTHROPIC, PAGE_TOKENS
from compactd.core.tokens.media import image_size, image_tokens, page_count
from compactd.protocol.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)


class Letters(Struct, frozen=True):
    """A counter of one token a code point: what it counted can be read off."""

    name: str = "letters"
    exact: bool = True

    def count(self, text: str) -> int:
        return len(text)


def message(*blocks: Block) -> Message:
    return Message(role="assistant", content=blocks)


def letters(*blocks: Block) -> int:
    return message_tokens(message(*blocks), Letters())


# --- texts ------------------------------------------------------------------------------------------------


def test_chars4_is_code_points_by_four_rounded_up() -> None:
    assert [Chars4().count(text) for text in ("", "a", "abcd", "abcde", "日本語です", "😀😀😀😀")] == [
        0, 1, 1, 2, 2, 1,
    ]  # fmt: skip


def test_chars4_utf16_rounds_half_up_and_counts_an_emoji_twice() -> None:
    texts = ("", "a", "ab", "abcdef", "日本", "😀", "\ud83d")

    assert [Chars4Utf16().count(text) for text in texts] == [0, 0, 1, 2, 1, 1, 0]


@given(st.text(max_size=400))
def test_chars4_utf16_is_what_javascript_would_round_to(text: str) -> None:
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2

    assert Chars4Utf16().count(text) == int(units / 4 + 0.5)


@given(st.text(max_size=400))
def test_an_estimate_is_zero_only_for_no_text_and_never_more_than_three_tokens_a_character(text: str) -> None:
    counted = ScriptAware().count(text)

    assert (counted == 0) == (text == "")
    assert counted <= 3 * len(text) + 1


@given(st.text(max_size=200), st.text(max_size=200))
def test_an_estimate_of_two_texts_together_is_about_the_sum(one: str, other: str) -> None:
    assert abs(estimate(one + other) - estimate(one) - estimate(other)) <= 4


def test_the_factor_of_a_family_multiplies_the_estimate() -> None:
    text = "The loader keeps an etag for each file. " * 200

    assert ScriptAware(1.2).count(text) == round(estimate(text) * 1.2)
    assert [family_factor(name) for name in ("o200k_base", "openai", "claude", "gemini", "qwen", None)] == [
        1.0, 1.0, 1.13, 1.15, 1.1, 1.1,
    ]  # fmt: skip


# --- blocks -----------------------------------------------------------------------------------------------


def test_a_message_is_the_sum_of_its_blocks_and_nothing_more() -> None:
    assert letters() == 0
    assert letters(Text(text="abc"), Text(text="de")) == 5
    assert message_tokens(message(Text(text="abc"), Text(text="de")), Chars4()) == 2


def test_thinking_counts_its_text_but_not_its_signature() -> None:
    assert letters(Thinking(text="hmm", signature="x" * 1000)) == 3


def test_a_call_is_its_name_and_its_arguments_as_compact_json() -> None:
    call = ToolCall(call_id="c1", name="read", arguments=Raw(b'{ "path" : "a.py",\n "deep" : [1, 2] }'))

    assert letters(call) == len('read{"path":"a.py","deep":[1,2]}')


def test_white_space_and_escapes_of_arguments_do_not_change_their_count() -> None:
    arguments = {"text": "naïve 日本 😀", "n": 1.5, "list": [True, None]}
    spellings = (
        json.dumps(arguments),
        json.dumps(arguments, ensure_ascii=False, indent=4),
        json.dumps(json.dumps(arguments, indent=2)),
    )

    counts = {letters(ToolCall(call_id="c", name="t", arguments=Raw(s.encode()))) for s in spellings}

    assert len(counts) == 1


def test_an_arguments_string_that_is_no_json_counts_as_its_text() -> None:
    assert letters(ToolCall(call_id="c", name="t", arguments=Raw(b'"{\\"path\\": "'))) == 1 + len('{"path": ')


def test_arguments_that_cannot_be_decoded_count_as_their_raw_text() -> None:
    assert letters(ToolCall(call_id="c", name="t", arguments=Raw(b'{"a": "\\ud83d"}'))) == 1 + 15


def test_a_result_counts_its_text_or_the_blocks_inside_it() -> None:
    inside = (Text(text="abc"), Image(width=300, height=250))

    assert letters(ToolResult(call_id="c", name="read", content="abcd")) == 4
    assert letters(ToolResult(call_id="c", content=inside)) == 3 + 100


def test_a_system_prompt_counts_its_text_and_none_counts_nothing() -> None:
    assert system_tokens("be brief", Letters()) == 8
    assert system_tokens(None, Letters()) == 0


def test_a_tool_is_its_name_description_and_schema_as_compact_json() -> None:
    tool = Tool(name="read", description="Reads a file", input_schema=Raw(b'{ "type": "object" }'))
    written = '{"name":"read","description":"Reads a file","input_schema":{"type":"object"}}'

    assert tool_tokens(tool, Letters()) == len(written)


# --- what is no text --------------------------------------------------------------------------------------


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100_000))


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0" * 50


def jpeg(width: int, height: int, before: int) -> bytes:
    exif = b"".join(b"\xff\xe1" + struct.pack(">H", 60_002) + b"\0" * 60_000 for _ in range(before))
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\0" * 9
    return b"\xff\xd8" + exif + frame + b"\xff\xda" + b"\0" * 100


def webp(kind: bytes, width: int, height: int) -> bytes:
    match kind:
        case b"VP8 ":
            data = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
        case b"VP8L":
            data = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
        case _:
            data = b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return (
        b"RIFF" + struct.pack("<I", 100) + b"WEBP" + kind + struct.pack("<I", len(data)) + data + b"\0" * 20
    )


def test_an_image_of_any_kind_tells_its_size_in_its_first_bytes() -> None:
    files = {
        "png": png(640, 480),
        "gif": gif(640, 480),
        "jpeg": jpeg(640, 480, before=0),
        "jpeg after 240 kB of metadata": jpeg(640, 480, before=4),
        "webp": webp(b"VP8 ", 640, 480),
        "webp, lossless": webp(b"VP8L", 640, 480),
        "webp, extended": webp(b"VP8X", 640, 480),
    }

    sizes = {name: image_size(base64.b64encode(file).decode()) for name, file in files.items()}

    assert sizes == dict.fromkeys(files, (640, 480))


def test_base64_in_lines_or_in_a_data_url_tells_the_size_too() -> None:
    plain = base64.b64encode(png(640, 480)).decode()

    assert image_size("data:image/png;base64," + plain) == (640, 480)
    assert image_size(base64.encodebytes(png(640, 480)).decode()) == (640, 480)
    assert image_size(base64.urlsafe_b64encode(gif(0xFBFF, 0xEFBE)).decode()) == (0xFBFF, 0xEFBE)


def test_an_image_costs_its_pixels_by_750_and_1600_at_most() -> None:
    assert image_tokens(Image(width=200, height=200)) == 54
    assert image_tokens(Image(width=4000, height=3000)) == ANTHROPIC.most
    assert image_tokens(Image(data=base64.b64encode(png(300, 250)).decode())) == 100


def test_an_image_of_unknown_size_costs_the_most() -> None:
    unknown = (
        Image(url="https://example.org/a.png"),
        Image(data="????"),
        Image(data=""),
        Image(width=0, height=5),
    )

    assert [image_tokens(image) for image in unknown] == [ANTHROPIC.most] * 4


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda data: base64.b64encode(data).decode()))
def test_no_image_data_breaks_the_count(data: str) -> None:
    assert 1 <= image_tokens(Image(data=data)) <= ANTHROPIC.most


@given(st.binary(max_size=120), st.integers(0, 6))
def test_no_damaged_image_breaks_the_count(damage: bytes, which: int) -> None:
    whole = (
        png(9, 9),
        gif(9, 9),
        jpeg(9, 9, 1),
        webp(b"VP8 ", 9, 9),
        webp(b"VP8L", 9, 9),
        webp(b"VP8X", 9, 9),
    )
    file = whole[which % 6]
    damaged = file[:16] + damage + file[16 + len(damage) :]

    assert 1 <= image_tokens(Image(data=base64.b64encode(damaged).decode())) <= ANTHROPIC.most


def test_a_megabyte_of_base64_counts_as_an_image_and_not_as_text() -> None:
    picture = Image(data=base64.b64encode(png(1000, 900) + b"\0" * 1_000_000).decode())

    assert letters(picture) == 1200


def test_a_document_counts_its_text_else_its_pages() -> None:
    assert letters(Document(title="ab", text="cdef")) == 6
    assert letters(Document(pages=3, data="x" * 10_000_000)) == 3 * PAGE_TOKENS
    assert letters(Document(media_type="text/plain", data=base64.b64encode("naïve".encode()).decode())) == 5


def test_pages_that_nobody_counted_are_guessed_from_the_size_and_at_most_100() -> None:
    sizes = (0, 100_000, 1_000_000, 1_000_000_000)

    assert [page_count(Document(data="x" * min(size, 20_000_000))) for size in sizes] == [1, 1, 15, 100]


def test_an_opaque_block_counts_its_bytes_by_four_but_a_blob_no_more_than_an_image() -> None:
    blob = base64.b64encode(bytes(range(256)) * 400)
    picture = Raw(b'{"type":"picture","data":"' + blob + b'"}')

    assert letters(Opaque(provider="openai", raw=Raw(b'{"a":"some words"}'))) == blob_tokens(
        b'{"a":"some words"}'
    )
    assert 4 <= blob_tokens(b'{"a":"some words"}') <= 8
    assert BLOB_TOKENS <= letters(Unknown(type="x", raw=picture)) <= BLOB_TOKENS + 20
    assert letters(Opaque(provider="openai", raw=picture)) == letters(Unknown(type="x", raw=picture))


def test_encrypted_reasoning_counts_what_its_base64_decodes_to_by_four() -> None:
    decoded_bytes = 256 * 400
    blob = base64.b64encode(bytes(range(256)) * 400)
    reasoning = Raw(b'{"type":"reasoning","encrypted_content":"' + blob + b'"}')

    tokens = letters(Opaque(provider="openai", raw=reasoning))

    assert abs(tokens - (decoded_bytes - 650) / 4) <= 1


def test_a_long_text_in_an_unknown_block_is_no_blob() -> None:
    words = b'{"text":"' + b"several plain words " * 2000 + b'"}'

    assert blob_tokens(words) >= len(words) // 4
