"""Twins (broken daemons) that are the real daemon with one part replaced before anything else is loaded."""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path


def serve() -> int:
    from compactd.__main__ import main

    sys.argv = ["compactd", "serve"]
    return main()


def forgets_the_system_prompt() -> int:
    """Sizes are of the messages and tools alone."""
    from compactd.core.tokens import counting

    counting.system_tokens = lambda *_: 0
    return serve()


def acknowledges_too_early() -> int:
    """Under `durability: os`, what is appended stays in this process until the session is closed."""
    from compactd.storage import journal_file

    class Late(journal_file.JournalFile):
        def write(self, first_seq, appended):
            if self._sync is not None:
                return super().write(first_seq, appended)
            self.held = [*getattr(self, "held", ()), (first_seq, appended)]
            return None

        def close(self, *, remove=False):
            for one in getattr(self, "held", ()):
                super().write(*one)
            super().close(remove=remove)

    journal_file.JournalFile = Late
    return serve()


def takes_torn_records_in() -> int:
    """A torn record is completed and accepted."""
    for path in Path(os.environ["COMPACTD_HOME"]).rglob("*.jsonl"):
        *lines, last = path.read_bytes().split(b"\n")
        if last:
            mended = last + b'"}'
            record = b'%b,"crc":"%08x"}\n' % (mended, zlib.crc32(mended))
            path.write_bytes(b"\n".join([*lines, record]))
    return serve()


def undoes_what_came_later() -> int:
    """Undo goes back to where the compaction was made; later messages are on another branch."""
    from compactd.session import undo as rewinding

    whole = rewinding.undo

    def undo(session, **options):
        step, number = whole(session, **options)
        compaction = next(one for one in session.entries if getattr(one, "id", None) == step.id)
        return step, rewinding.branch(session, compaction.parent) or number

    rewinding.undo = undo
    return serve()


def makes_paths_of_ids() -> int:
    """A session's file is called as the session is."""
    from compactd.storage import paths

    paths.file_stem = lambda session_id: session_id
    return serve()


def cuts_originals() -> int:
    """An original that is longer than 4,000 characters is cut there."""
    from compactd.core.history import entries

    class Cut(entries.Reduced, frozen=True, kw_only=True, tag="reduced", omit_defaults=True):
        def __post_init__(self):
            if len(self.message) > 4000:
                import msgspec

                message = msgspec.json.decode(self.message)
                message["content"][0]["content"] = message["content"][0]["content"][:4000]
                msgspec.structs.force_setattr(self, "message", msgspec.Raw(msgspec.json.encode(message)))

    entries.Reduced = Cut
    return serve()
