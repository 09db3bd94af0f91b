"""Builds the Emacs package: dist/compactd-VERSION.tar, with its manual as info where makeinfo is there.

python editors/emacs/build.py [FOLDER]
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
MANUAL = HERE.parents[1] / "docs" / "emacs.md"

_HEAD = """\
\\input texinfo
@setfilename compactd.info
@settitle compactd
@documentencoding UTF-8
@dircategory Emacs misc features
@direntry
* compactd: (compactd).         How full a model's context is, and compaction.
@end direntry
"""


_DIR = """\
This is the file .../info/dir, which contains the topmost node.
\x1f
File: dir\tNode: Top

* Menu:

Emacs misc features
* compactd: (compactd).         How full a model's context is, and compaction.
"""


def version() -> str:
    """Of the package, as its main file says."""
    found = re.search(r"^;; Version: (.+)$", (HERE / "compactd.el").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("compactd.el has no Version header")
    return found[1]


def texinfo(markdown: str) -> str:
    """The page as a Texinfo manual: a chapter for each `##`."""
    title, *chapters = re.split(r"^## ", markdown, flags=re.MULTILINE)
    names = [_plain(chapter.split("\n", 1)[0]) for chapter in chapters]
    head, _, introduction = title.partition("\n")
    lines = [_HEAD, "@node Top", f"@top {_plain(head.removeprefix('# '))}", *_body(introduction), "@menu"]
    lines += [f"* {name}::" for name in names]
    lines += ["@end menu", ""]
    for name, chapter in zip(names, chapters, strict=True):
        lines += [f"@node {name}", f"@chapter {name}", *_body(chapter.partition("\n")[2])]
    return "\n".join([*lines, "@bye", ""])


def _plain(text: str) -> str:
    return re.sub(r"[`,.:()]", "", text).strip()


def _inline(text: str) -> str:
    escaped = re.sub(r"([@{}])", r"@\1", text)
    escaped = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", escaped)
    return re.sub(r"`([^`]+)`", r"@code{\1}", escaped)


def _body(markdown: str) -> Iterator[str]:
    """Paragraphs, code blocks, tables of two columns; pictures are left out."""
    is_code = in_table = False
    for line in markdown.split("\n"):
        is_row = line.startswith("|")
        if in_table and not is_row:
            yield "@end table"
            in_table = False
        if line.startswith("```"):
            yield "@end example" if is_code else "@example"
            is_code = not is_code
        elif is_code:
            yield re.sub(r"([@{}])", r"@\1", line)
        elif is_row:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if set(cells[0]) == {"-"}:
                yield "@table @asis"
                in_table = True
            elif in_table:
                yield f"@item {_inline(cells[0])}"
                yield _inline(" ".join(cells[1:]))
        elif not line.startswith("!["):
            yield _inline(line)
    if in_table:
        yield "@end table"


def _info(texi: str) -> dict[str, bytes]:
    makeinfo = shutil.which("makeinfo")
    if makeinfo is None:
        sys.stderr.write("makeinfo is not there: the package is built without its manual\n")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "compactd.texi"
        source.write_text(texi, encoding="utf-8")
        subprocess.run(
            [makeinfo, "--no-split", "--output=compactd.info", source.name], cwd=folder, check=True
        )
        info = (Path(folder) / "compactd.info").read_bytes()
    return {"compactd.texi": texi.encode(), "compactd.info": info, "dir": _DIR.encode()}


def build(folder: Path) -> Path:
    """Writes the package's tar file into `folder`; gives back its path."""
    name = f"compactd-{version()}"
    files = {path.name: path.read_bytes() for path in sorted(HERE.glob("*.el"))}
    about = '"How full a model\'s context is, and compaction"'
    files["compactd-pkg.el"] = (
        f";;; Generated package description -*- no-byte-compile: t -*-\n"
        f'(define-package "compactd" "{version()}" {about} \'((emacs "28.1")))\n'
    ).encode()
    files.update(_info(texinfo(MANUAL.read_text(encoding="utf-8"))))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.tar"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for file, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{file}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


if __name__ == "__main__":
    built = build(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[1] / "dist")
    sys.stdout.write(f"{built}\n")
