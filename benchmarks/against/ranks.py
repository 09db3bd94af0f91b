"""tiktoken's own cache, filled from the ranks that compactd is packed with: nothing is fetched.

tiktoken compares the file's hash with the one of the vocabulary that OpenAI publishes, so a difference would
be told, not measured.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha1
from pathlib import Path

from compactd.models.tokenizers.counters import unpack

URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
"""Where tiktoken 0.14 would fetch it; a cached file's name is this address's SHA-1 (tiktoken/load.py)."""


def write_ranks(folder: Path) -> None:
    """Writes o200k_base as tiktoken keeps it. 3.6 MB."""
    folder.mkdir(parents=True, exist_ok=True)
    ranks = sorted(unpack("o200k_base").items(), key=lambda item: item[1])
    data = b"".join(b"%b %d\n" % (b64encode(token), rank) for token, rank in ranks)
    (folder / sha1(URL.encode()).hexdigest()).write_bytes(data)
