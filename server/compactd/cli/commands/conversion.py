"""Convert a session file to another format, with a format's writer or through a temporary daemon."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from msgspec import Struct

from compactd.cli.framework.load_file import TIMEOUT_S
from compactd.client import Client
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.session_formats import WRITABLE
from compactd.formats.files.write import write
from compactd.session.export_file import FORMATS

__all__ = ["FORMATS", "Converted", "convert"]


class Converted(Struct, frozen=True, kw_only=True):
    """A converted session file: its bytes, and what was lost."""

    data: bytes
    warnings: tuple[str, ...]


def convert(data: bytes, file: SessionFile, format: str) -> Converted:
    """Convert the session `file`, which was parsed from `data`, to one of `FORMATS`.

    If `file` is a compactd journal, or if `format` has no writer (`WRITABLE`), a temporary daemon converts
    the file. The daemon's data folder is deleted afterwards, and its errors are raised. O(bytes).
    """
    if format in WRITABLE and file.format != "compactd":
        written = write(file, format)
        return Converted(data=written.data, warnings=(*file.warnings, *written.warnings))
    with tempfile.TemporaryDirectory(prefix="compactd-") as home:
        source, target = Path(home) / "in", Path(home) / "out"
        source.write_bytes(data)
        with Client(env={**os.environ, "COMPACTD_HOME": home}) as client:
            taken = client.session_import(path=str(source), format=file.format, timeout_s=TIMEOUT_S)
            given = client.session_export(
                session_id=taken.session_id, format=format, path=str(target), timeout_s=TIMEOUT_S
            )
        return Converted(data=target.read_bytes(), warnings=(*taken.warnings, *given.warnings))
