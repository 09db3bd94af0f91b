"""Draws docs/dev/house.svg for docs/dev/architecture.md: which room of the package imports which.

    python tools/house_picture.py [--check]

`--check` writes nothing and exits with 1 if the picture is out of date. An arrow that follows from others is
left out: the picture has the smallest set of arrows from which all imports follow.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "server" / "compactd"
PICTURE = ROOT / "docs" / "dev" / "house.svg"

LEFT_OUT = ("_runtime", "__main__", "__init__")
"""The start of the program, and modules that every room may import."""
COLUMNS = {"cli": 0, "integrations": 0, "client": 0, "formats": 2}
"""Column of a room; rooms not named here are in column 1, the middle."""

WIDTH, HEIGHT, BOX_WIDTH, ROW, COLUMN = 640, 40, 140, 78, 200

Imports = Mapping[str, frozenset[str]]


def imported_by(file: Path) -> Iterator[str]:
    """Yields the rooms of compactd that `file` imports, anywhere in it."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module="compactd", names=names):
                modules = [f"compactd.{name.name}" for name in names]
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case _:
                continue
        yield from (module.split(".")[1] for module in modules if module.startswith("compactd."))


def imports() -> Imports:
    """Returns the rooms that each room imports."""
    rooms = {path.stem for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()} - set(LEFT_OUT)
    return {
        room: frozenset(
            found
            for file in (PACKAGE / room).rglob("*.py")
            for found in imported_by(file)
            if found in rooms and found != room
        )
        for room in sorted(rooms)
    }


def levels(rooms: Imports) -> dict[str, int]:
    """Returns the level of each room: one above the highest room that it imports.

    Raises `RecursionError` if rooms import each other in a circle, which import-linter forbids.
    """

    @cache
    def level(room: str) -> int:
        return 1 + max((level(below) for below in rooms[room]), default=-1)

    return {room: level(room) for room in rooms}


def arrows(rooms: Imports) -> list[tuple[str, str]]:
    """Returns the imports that do not follow from others."""

    @cache
    def reached(room: str) -> frozenset[str]:
        return rooms[room].union(*(reached(below) for below in rooms[room]))

    return sorted(
        (room, below)
        for room, direct in rooms.items()
        for below in direct
        if not any(below in reached(other) for other in direct - {below})
    )


def drawn() -> str:
    """Returns the picture."""
    rooms = imports()
    at_level = levels(rooms)
    top = max(at_level.values())
    places = {
        room: (WIDTH // 2 + (COLUMNS.get(room, 1) - 1) * COLUMN, 30 + (top - at_level[room]) * ROW)
        for room in rooms
    }
    height = 60 + top * ROW + HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="The rooms of compactd; an arrow leads from a room to one that it imports">',
        "<style>rect{fill:#f6f8fa;stroke:#57606a}text{font:15px sans-serif;fill:#1f2328;text-anchor:middle}"
        "line{stroke:#57606a;stroke-width:1.5}path{fill:#57606a}"
        "@media (prefers-color-scheme:dark){rect{fill:#21262d;stroke:#8b949e}text{fill:#e6edf3}"
        "line{stroke:#8b949e}path{fill:#8b949e}}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    for room, below in arrows(rooms):
        (x, y), (to_x, to_y) = places[room], places[below]
        parts.append(
            f'<line x1="{x}" y1="{y + HEIGHT}" x2="{to_x}" y2="{to_y}" marker-end="url(#tip)"/>',
        )
    for room, (x, y) in places.items():
        parts.append(f'<rect x="{x - BOX_WIDTH // 2}" y="{y}" width="{BOX_WIDTH}" height="{HEIGHT}" rx="6"/>')
        parts.append(f'<text x="{x}" y="{y + 25}">{room}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main(arguments: list[str]) -> int:
    """Writes or checks the picture. Returns the exit code."""
    picture = drawn()
    if arguments == ["--check"]:
        if not PICTURE.is_file() or PICTURE.read_text("utf-8") != picture:
            print("docs/dev/house.svg is out of date; run: python tools/house_picture.py", file=sys.stderr)
            return 1
        return 0
    PICTURE.write_text(picture, "utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}, {len(picture):,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
