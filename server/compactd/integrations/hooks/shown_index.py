"""What an agent's context already shows of tool outputs: two files next to the hook's state.

One file has the texts, one after the other. The other has a frame per text: whose it is, where it is, and a
checksum of each line that is long enough to be looked up. To reduce an output, the hook reads all frames, and
only those texts that share lines with the output. So a call costs about a tenth of what is shown, and adding
a text costs its own length. Both files are removed when a compaction removes what they describe.

Each sub-agent has files of its own, because it does not see what the session's context shows.
"""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from struct import Struct as Packing
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from compactd.core.reduce.numbering import plain_lines
from compactd.core.reduce.shown import MIN_ANCHOR_CHARS
from compactd.storage import files
from compactd.storage.hook_files import HookFiles

MIN_SHOWN_CHARS: Final = 200
"""A shorter text is not kept, unless it was reduced: no run of its lines would be left out elsewhere."""
MIN_SHARED_CHARS: Final = 150
"""A text is read if the lines that it shares with an output have at least so many characters."""
MAX_READ_BYTES: Final = 500_000
"""The most bytes of texts that are read for one output: those that share most with it."""
MAX_BYTES: Final = 32_000_000
"""If the texts have more bytes, the files begin again. No context is larger."""
_PROMPT: Final = ("", None)
"""The key of the frame with the last prompt (`entry_id`) and the calls that were rewound until then
(`path`)."""
_LENGTH: Final = Packing("<I")


class ShownText(Struct, frozen=True, array_like=True):
    """A text of a tool's output that the context shows."""

    call_id: str
    part: int | None
    entry_id: str
    """The entry that has the whole text; empty if none has it yet."""
    name: str
    """The tool."""
    path: dict[str, str]
    """The arguments of the call that name a file."""
    is_reduced: bool
    has_marks: bool
    """Whether something is left out of it."""
    offset: int
    size_bytes: int
    lines: bytes
    """A checksum of each line that can be looked up, 4 bytes each."""


class ShownIndex:
    """The texts that one context shows. Use it only while you have the lock on the session's hook files."""

    def __init__(self, hook_files: HookFiles, agent_id: str = "") -> None:
        self._texts_path, self._frames_path = hook_files.shown_paths(agent_id)
        self._texts, self._whole_bytes = self._read()

    def _read(self) -> tuple[dict[tuple[str, int | None], ShownText], int]:
        """Return (the texts, oldest first; the bytes of whole frames). O(frames)."""
        found: dict[tuple[str, int | None], ShownText] = {}
        try:
            data = memoryview(self._frames_path.read_bytes())
        except OSError:
            return {}, 0
        decode = msgspec.msgpack.Decoder(ShownText).decode
        at = 0
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            while at + _LENGTH.size <= len(data):
                (length,) = _LENGTH.unpack_from(data, at)
                end = at + _LENGTH.size + length
                if end > len(data):
                    break
                one = decode(data[at + _LENGTH.size : end])
                before = found.get((one.call_id, one.part))
                found[one.call_id, one.part] = one if before is None else replace(one, lines=before.lines)
                at = end
        return found, at

    @property
    def has_marks(self) -> bool:
        """Whether the context shows a text with marks."""
        return any(one.has_marks for one in self._texts.values())

    def follow_prompt(self, prompt_id: str, transcript: str) -> None:
        """Forget all texts if the user has rewound the conversation since the last prompt: a part of them has
        left the context. Raise `OSError`. O(1) for the prompt of the last call, otherwise O(a part of the
        transcript).
        """
        last = self._texts.get(_PROMPT)
        if not prompt_id or (last is not None and last.entry_id == prompt_id):
            return
        from compactd.integrations.hooks.rewinds import rewound_calls

        gone = rewound_calls(Path(transcript))
        if last is not None and not gone <= set(last.path):
            self._forget()
        name, part = _PROMPT
        told = ShownText(name, part, prompt_id, "", dict.fromkeys(gone, ""), False, False, 0, 0, b"")
        self._add_frame(told)

    def get(self, call_id: str, part: int | None) -> ShownText | None:
        """Return what the context shows of a call's output, if it is known."""
        return self._texts.get((call_id, part))

    def text_of(self, shown: ShownText) -> str:
        """Return the text. Raise `OSError` if it cannot be read."""
        with self._texts_path.open("rb") as file:
            file.seek(shown.offset)
            return file.read(shown.size_bytes).decode("utf-8", "replace")

    def sharing(self, text: str) -> list[tuple[ShownText, str]]:
        """Return the texts that have lines of `text`, oldest first, at most `MAX_READ_BYTES` of them.
        O(frames + what is returned).
        """
        sizes = {
            zlib.crc32(line.encode("utf-8", "replace")): len(line)
            for line in plain_lines(text.split("\n"))
            if len(line) >= MIN_ANCHOR_CHARS
        }
        shared: list[tuple[int, int, ShownText]] = []
        for number, one in enumerate(self._texts.values()):
            size = sum(map(sizes.__getitem__, sizes.keys() & _checksums(one.lines)))
            if size >= MIN_SHARED_CHARS:
                shared.append((size, number, one))
        room = MAX_READ_BYTES
        chosen: list[tuple[int, ShownText]] = []
        for _, number, one in sorted(shared, key=lambda row: row[:2], reverse=True):
            if one.size_bytes <= room:
                room -= one.size_bytes
                chosen.append((number, one))
        with suppress(OSError):
            return [(one, self.text_of(one)) for _, one in sorted(chosen, key=lambda row: row[0])]
        return []

    def add(self, one: ShownText, text: str) -> None:
        """Add a text that the context shows now. `offset`, `size_bytes` and `lines` of `one` are not used.
        Raise `OSError`. O(length).
        """
        if len(text) < MIN_SHOWN_CHARS and not one.is_reduced:
            return
        data = text.encode("utf-8", "replace")
        if self._texts_path.exists() and self._texts_path.stat().st_size > MAX_BYTES:
            self._forget()
        offset = _append(self._texts_path, None, data)
        lines = array(
            "I",
            (
                zlib.crc32(line.encode("utf-8", "replace"))
                for line in plain_lines(text.split("\n"))
                if len(line) >= MIN_ANCHOR_CHARS
            ),
        )
        self._add_frame(replace(one, offset=offset, size_bytes=len(data), lines=lines.tobytes()))

    def name(self, one: ShownText, entry_id: str) -> None:
        """Note which entry has the whole text of `one`. Raise `OSError`."""
        self._add_frame(replace(one, entry_id=entry_id))

    def _forget(self) -> None:
        self._frames_path.unlink(missing_ok=True)
        self._texts_path.unlink(missing_ok=True)
        self._texts, self._whole_bytes = {}, 0

    def _add_frame(self, one: ShownText) -> None:
        before = self._texts.get((one.call_id, one.part))
        self._texts[one.call_id, one.part] = one
        data = msgspec.msgpack.encode(one if before is None else replace(one, lines=b""))
        data = _LENGTH.pack(len(data)) + data
        _append(self._frames_path, self._whole_bytes, data)
        self._whole_bytes += len(data)


def _checksums(lines: bytes) -> Sequence[int]:
    found = array("I")
    found.frombytes(lines[: len(lines) // found.itemsize * found.itemsize])
    return found


def _append(path: Path, size_bytes: int | None, data: bytes) -> int:
    """Write `data` after the first `size_bytes` of a file, or at its end. Return where it begins."""
    fd = files.open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        end = os.fstat(fd).st_size
        at = end if size_bytes is None else min(size_bytes, end)
        if at < end:
            os.ftruncate(fd, at)
        os.lseek(fd, at, os.SEEK_SET)
        files.write_all(fd, (data,))
    finally:
        os.close(fd)
    return at
