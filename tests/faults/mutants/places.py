"""All mutants of a source file: each is one small wrong edit."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "server" / "compactd"
TARGETS = (
    "core/planning",
    "core/budget",
    "core/summary",
    "core/authors",
    "agent/recovery.py",
    "compaction/run.py",
)
"""The code that is mutated: planning with prune, budget, summary, provenance, recovery."""

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
}
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutant(Struct, frozen=True, kw_only=True):
    """One wrong edit of one file."""

    file: str
    """The file's path below server/compactd."""
    line: int
    start: int
    end: int
    """The bytes of the file that `new` replaces."""
    old: str
    new: str
    name: str
    """Says what is edited, also after other parts of the file have changed."""

    def key(self, seed: int) -> bytes:
        """Return what decides whether a sample has this mutant."""
        return hashlib.sha256(f"{seed} {self.name}".encode()).digest()

    def apply(self, source: bytes) -> bytes:
        """Return the edited source of the file."""
        return source[: self.start] + self.new.encode() + source[self.end :]


def all_mutants(targets: Sequence[str] = TARGETS) -> list[Mutant]:
    """Return the mutants of all files in `targets`, in the order of the files."""
    files = [
        path
        for target in targets
        for path in (
            sorted((SOURCE / target).glob("*.py")) if (SOURCE / target).is_dir() else [SOURCE / target]
        )
    ]
    return [mutant for path in files for mutant in mutants_of(path)]


def sample(count: int, seed: int, targets: Sequence[str] = TARGETS) -> list[Mutant]:
    """Return `count` of all mutants. Who stays in the sample of a seed does not depend on other code."""
    return sorted(all_mutants(targets), key=lambda mutant: mutant.key(seed))[:count]


def mutants_of(path: Path) -> list[Mutant]:
    """Return the mutants of one file, from its beginning to its end."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    file = str(path.relative_to(SOURCE))
    found: list[Mutant] = []
    counted: dict[str, int] = {}
    for where, node, new in _Finder(ast.parse(source)).found:
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        old = source[start:end].decode()
        title = f"{file} {where}: {' '.join(old.split())} -> {' '.join(new.split())}"
        number = counted[title] = counted.get(title, 0) + 1
        name = title if number == 1 else f"{title} ({number})"
        found.append(Mutant(file=file, line=node.lineno, start=start, end=end, old=old, new=new, name=name))
    return found


_Place = tuple[str, "ast.expr | ast.stmt", str]
"""(the function, what is replaced, by what)."""


class _Finder(ast.NodeVisitor):
    """Walks through a module and collects the places."""

    def __init__(self, module: ast.Module) -> None:
        self.found: list[_Place] = []
        self._where: list[str] = []
        self.visit(module)

    def _add(self, node: ast.expr | ast.stmt, new: str) -> None:
        self.found.append((".".join(self._where) or "module", node, new))

    def _replace(self, node: ast.expr, other: ast.expr) -> None:
        self._add(node, f"({ast.unparse(other)})")

    # --- what is left alone: annotations, decorators, f-strings, docstrings and messages -----------------

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass  # the positions in it are wrong before Python 3.12

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node.name, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inside(node.name, node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._inside(node.name, node.body)

    def _inside(self, name: str, body: Sequence[ast.stmt]) -> None:
        self._where.append(name)
        for statement in body:
            self.visit(statement)
        self._where.pop()

    # --- what is edited ---------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1:
            other = copy.deepcopy(node)
            other.ops = [_COMPARED[type(node.ops[0])]()]
            self._replace(node, other)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        kind = _COMPUTED.get(type(node.op))
        if kind is not None and not any(map(_is_text, (node.left, node.right))):
            other = copy.deepcopy(node)
            other.op = kind()
            self._replace(node, other)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = copy.deepcopy(node)
        other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace(node, other)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(node, node.operand)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        match node.value:
            case bool():
                self._add(node, str(not node.value))
            case int():
                self._add(node, str(node.value + 1))
            case float():
                self._add(node, repr(node.value * 2 if node.value else 1.0))
            case _:
                pass

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and (called := _CALLED.get(node.func.id)) is not None:
            self._add(node.func, called)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if not isinstance(node.test, ast.Compare | ast.UnaryOp):
            self._add(node.test, f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._add(node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._add(node, "pass")
        self.visit(node.value)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(node, "break")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr | ast.Tuple | ast.List) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )
