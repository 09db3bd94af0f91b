"""Fills tiktoken's cache with the vocabularies in compactd's package, so that nothing is downloaded.

tiktoken compares the file's hash with that of OpenAI's published vocabulary, so a different file would be an
error.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha1
from pathlib import Path

from compactd.models.tokenizers.counters import unpack

URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
"""The address from which tiktoken 0.14 would fetch the file. A cached file's name is the SHA-1 of this
address (tiktoken/load.py)."""


def write_ranks(folder: Path) -> None:
    """Writes o200k_base as tiktoken keeps it. 3.6 MB."""
    folder.mkdir(parents=True, exist_ok=True)
    ranks = sorted(unpack("o200k_base").items(), key=lambda item: item[1])
    data = b"".join(b"%b %d\n" % (b64encode(token), rank) for token, rank in ranks)
    (folder / sha1(URL.encode()).hexdigest()).write_bytes(data)
