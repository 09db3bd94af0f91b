"""Read a shell command line: the simple commands in it, and what each is for.

This is no shell. Quotes, operators, wrappers (`sudo`, `timeout 60`, `uv run`) and `bash -c '...'` are
understood, expansions and here-documents are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.text.lazy_patterns import LazyPattern

CheckKind = Literal["test", "build", "lint", "types", "other"]

MAX_COMMAND_CHARS: Final = 4_000
"""Only this many characters of a command line are read. What follows is usually a script in a
here-document."""
MAX_OPTIONS: Final = 8
"""The command of a program is among so many first words."""
MAX_NESTED: Final = 2
"""How deep `bash -c` is followed."""

_TOKEN: Final = LazyPattern(
    r"(?P<blank>\\\r?\n|[^\S\n]+)"
    r"|(?P<end>\n)"
    r"|(?P<comment>(?<![^\s;|&()])#[^\n]*)"
    r"|(?P<redirect>&>>?|(?:(?<![^\s;|&()])\d)?(?:<<?<?|<>|>>?\|?)(?!\()(?:&[\d-]?)?)"
    r"""|(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;|&()<>'"\\]|['"\\]|[<>]\()+)"""
    r"|(?P<operator>&&|\|\||\|&|;;|[;|&()])",
    re.DOTALL,
)
"""Matches the next token of a command line. A quote without its partner is part of a word."""
_QUOTED: Final = LazyPattern(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)""", re.DOTALL)
"""Matches a quoted part of a word, or a character after a backslash."""
_HEREDOC: Final = LazyPattern(
    r"(?<!<)<<(?!<)-?[ \t]*(['\"]?)(\w+)\1([^\n]*)\n.*?(?:^[ \t]*\2[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
"""Matches a here-document. Group 3 is what follows on the line that begins it."""
_ASSIGNMENT: Final = LazyPattern(r"\A[A-Za-z_]\w*=")
"""Matches a word that sets a variable."""
_OPTIONS: Final = """
-C -p -w -j -f --project --directory --prefix --filter --with --extra --group --python --package --env-file
"""
_OPTION_WITH_VALUE: Final = frozenset(_OPTIONS.split())
"""Options of runners and build tools whose value is the next word."""

_WRAPPERS: Final = """
sudo time env command exec nohup nice timeout gtimeout xvfb-run stdbuf caffeinate unbuffer npx bunx pnpx uvx
corepack rtk xargs
"""
_WRAPPER_WORDS: Final = frozenset(_WRAPPERS.split())
"""Programs that run the program after them."""
_WRAPPER_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "sudo": ("-u", "-g", "-h", "-p"),
    "env": ("-u", "-C"),
    "timeout": ("-s", "-k"),
    "gtimeout": ("-s", "-k"),
    "nice": ("-n",),
    "stdbuf": ("-i", "-o", "-e"),
    "npx": ("-p", "--package"),
    "uvx": ("--from", "--with", "--python"),
    "xargs": ("-n", "-P", "-I", "-L", "-d", "-a"),
}
"""Options of wrappers whose value is the next word."""
_RUNNERS: Final = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "bundle": ("exec",),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "npm": ("exec",),
    "mise": ("exec", "x"),
    "docker": ("exec",),
    "docker-compose": ("exec",),
    "direnv": ("exec",),
}
"""Programs that run another one if this word follows."""
_RUN_IN_A_PLACE: Final = frozenset(("docker", "docker-compose", "direnv"))
"""Runners that take a container or a folder before the program."""
_KEYWORDS: Final = frozenset(("!", "then", "do", "else", "elif", "if", "while", "until", "{"))
"""Words of the shell that a command may follow."""
_ENDS: Final = frozenset(("fi", "done", "esac", "}"))
"""Words of the shell that end a compound command. They are no programs."""
_SHELLS: Final = frozenset(("bash", "sh", "zsh", "dash"))
"""Shells, which run a script or the command line after `-c`."""

_TEST: Final = r"(?:run)?tests?|spec|e2e|integration|unit|coverage|vitest|jest|pytest"
"""The words in the name of a script or target that runs tests."""
_START: Final = r"(?:\A|[:_./-])"
"""The beginning of a word in the name of a script or target."""
_CHECKS_STYLE: Final = r"(?:format|fmt|prettier|style)[:_./-]check|check[:_./-](?:format|fmt|prettier|style)"
"""The name of a script or target that checks the format of files. Without `check` it changes them."""
_SCRIPT_KINDS: Final[tuple[tuple[LazyPattern, CheckKind], ...]] = (
    (LazyPattern(rf"{_START}(?:{_TEST})(?:\Z|[:_./-]|(?-i:[A-Z]))|(?-i:[a-z]Test\Z)", re.IGNORECASE), "test"),
    (LazyPattern(rf"type-?_?check|{_START}types|tsc|mypy|pyright", re.IGNORECASE), "types"),
    (LazyPattern(rf"lint|clippy|biome|{_CHECKS_STYLE}", re.IGNORECASE), "lint"),
    (LazyPattern(rf"{_START}(?:re)?(?:build|compile|bundle|assemble|package|dist)", re.IGNORECASE), "build"),
    (LazyPattern(rf"check|verify|validate|{_START}ci(?:\Z|[:_./-])", re.IGNORECASE), "other"),
)
"""What a script's or a make target's name says about it. The first that matches decides."""

_PROGRAM_NAMES: Final[dict[CheckKind, str]] = {
    "test": """
        pytest py.test tox nox jest vitest mocha ava rspec phpunit ctest cypress unittest nosetests bats
        gotestsum ginkgo karma pest
        """,
    "lint": """
        ruff eslint flake8 pylint golangci-lint prettier black isort biome stylelint shellcheck rubocop gofmt
        goimports gofumpt staticcheck pre-commit rustfmt clippy-driver ktlint swiftlint hadolint markdownlint
        oxlint standard
        """,
    "types": "mypy pyright basedpyright tsc vue-tsc flow pyre ty pytype phpstan psalm",
    "build": "ninja xcodebuild webpack rollup esbuild tsup javac gcc g++ clang clang++ rustc",
}
_PROGRAMS: Final[dict[str, CheckKind]] = {
    name: kind for kind, names in _PROGRAM_NAMES.items() for name in names.split()
}
"""Programs that check, and what they check."""
_SAYS_ONLY: Final = frozenset(("--version", "--help", "-V"))
"""Options with which a program says something about itself and checks nothing."""
_FORMATTERS: Final[dict[str, str]] = {
    "black": "--check --diff",
    "isort": "--check --check-only -c --diff",
    "prettier": "--check -c --list-different -l",
    "gofmt": "-l -d",
    "goimports": "-l -d",
    "gofumpt": "-l -d",
    "rustfmt": "--check",
    "ruff format": "--check --diff",
    "biome format": "",
    "cargo fmt": "--check",
    "go fmt": "",
    "mix format": "--check-formatted",
    "deno fmt": "--check",
    "dart format": "--set-exit-if-changed",
}
"""Programs that change files, and the options with which they only check them. They check nothing else."""
_CHANGES_FILES: Final = frozenset(("-w", "--write"))
"""Options with which a formatter changes files, whatever else it is told."""
_FORMATS: Final = LazyPattern(rf"{_START}(?:format|fmt|prettier|style)", re.IGNORECASE)
"""Matches the name of a script or target that formats files."""

_MAVEN: Final[dict[str, CheckKind]] = {
    "test": "test",
    "verify": "test",
    "package": "build",
    "compile": "build",
    "install": "build",
}
"""What the phases of Maven check."""
_SUBCOMMANDS: Final[dict[str, dict[str, CheckKind]]] = {
    "go": {"test": "test", "vet": "lint", "build": "build", "fmt": "lint", "install": "build"},
    "cargo": {
        "test": "test",
        "nextest": "test",
        "build": "build",
        "check": "types",
        "clippy": "lint",
        "fmt": "lint",
    },
    "npm": {"test": "test", "t": "test"},
    "pnpm": {"test": "test", "t": "test", "lint": "lint", "build": "build", "typecheck": "types"},
    "yarn": {"test": "test", "lint": "lint", "build": "build", "typecheck": "types"},
    "bun": {"test": "test", "build": "build"},
    "deno": {"test": "test", "lint": "lint", "check": "types", "fmt": "lint"},
    "dotnet": {"test": "test", "build": "build"},
    "swift": {"test": "test", "build": "build"},
    "mix": {"test": "test", "compile": "build", "format": "lint", "credo": "lint", "dialyzer": "types"},
    "mvn": _MAVEN,
    "mvnw": _MAVEN,
    "flutter": {"test": "test", "build": "build", "analyze": "lint"},
    "dart": {"test": "test", "analyze": "lint", "format": "lint"},
    "bazel": {"test": "test", "build": "build"},
    "sbt": {"test": "test", "compile": "build"},
    "rails": {"test": "test", "test:system": "test"},
    "manage.py": {"test": "test", "check": "other"},
    "playwright": {"test": "test"},
    "node": {"--test": "test"},
    "docker": {"build": "build"},
    "cmake": {"--build": "build"},
    "vite": {"build": "build"},
    "next": {"build": "build", "lint": "lint"},
    "ng": {"test": "test", "build": "build", "lint": "lint"},
    "turbo": {},
    "nx": {},
    "python -m": {
        "pytest": "test",
        "unittest": "test",
        "doctest": "test",
        "mypy": "types",
        "pyright": "types",
        "ruff": "lint",
        "flake8": "lint",
        "pylint": "lint",
        "black": "lint",
        "build": "build",
        "compileall": "build",
        "py_compile": "build",
    },
}
"""What a program checks, by the first word after it."""

_SCRIPT_RUNNERS: Final[dict[str, tuple[str, ...]]] = {
    "make": ("",),
    "gmake": ("",),
    "just": ("",),
    "task": ("",),
    "rake": ("",),
    "gradle": ("",),
    "gradlew": ("",),
    "invoke": ("",),
    "poe": ("",),
    "turbo": ("run", ""),
    "nx": ("run", ""),
    "npm": ("run", "run-script"),
    "pnpm": ("run", ""),
    "yarn": ("run", ""),
    "bun": ("run",),
    "mise": ("run", "r", ""),
    "composer": ("run", ""),
    "deno": ("task",),
}
"""Programs that run a script or a target by its name, and the words that may stand before the name."""

_MANY_TARGETS: Final = frozenset(("make", "gmake", "gradle", "gradlew", "mvn", "mvnw", "rake"))
"""Programs that take several targets, such as `mvn clean test`."""
_INTERPRETERS: Final = LazyPattern(r"\A(?:python[\d.]*|node|ruby|php|tsx|ts-node)\Z")
"""Matches a program whose first word is the file with the script."""
_SCRIPT_FILE: Final = LazyPattern(r"\.(?:sh|py|[cm]?[jt]s|rb|php)\Z")
"""Matches the name of a script file."""


class Command(Struct, frozen=True):
    """One simple command of a command line."""

    program: str
    """The program's name without its folder; `python -m` for a module that Python runs."""
    words: tuple[str, ...]
    """What follows the program, without quotes. Redirections are left out."""
    after: str = ""
    """The operator before this command: `&&`, `||`, `|`, `;`, or empty for the first."""
    is_piped: bool = False
    """Whether its output goes to another command, so that its exit code is lost."""

    @property
    def text(self) -> str:
        """The command on one line."""
        return " ".join(" ".join((self.program, *self.words)).split())


def commands_in(line: str, nested: int = 0) -> tuple[Command, ...]:
    """Return the simple commands of a command line, in order. O(length, at most `MAX_COMMAND_CHARS`)."""
    text = line[:MAX_COMMAND_CHARS]
    if "<<" in text:
        text = _HEREDOC.sub(r"\3\n", text)
    reader = _Reader(nested)
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "word":
                reader.word(token[0])
            case "redirect":
                reader.takes_file = re.search(r"&[\d-]\Z", token[0]) is None
            case "operator":
                reader.end_command(token[0])
            case "end":
                reader.end_command("\n")
            case _:
                pass
    reader.end_command("\n")
    return tuple(reader.found)


def check_kind(command: Command) -> CheckKind | None:
    """Return what a command checks; None if it is no check. O(words)."""
    program, words = command.program, command.words
    if "@" in program[1:]:
        # npx takes a version: `vitest@latest`.
        program = program[: program.index("@", 1)]
    if words and not _SAYS_ONLY.isdisjoint(words):
        return None
    plain = _plain_words(program, words)
    if only_formats(command):
        return None
    first = plain[0] if plain else ""
    if program in _PROGRAMS:
        if program in ("tsc", "vue-tsc") and "--noEmit" not in words and "-noEmit" not in words and words:
            return "types" if "-p" in words or "--project" in words else "build"
        return _PROGRAMS[program]
    targets = plain if program in _MANY_TARGETS else plain[:1]
    known = _SUBCOMMANDS.get(program, {})
    found = next((word for word in targets if word in known), None)
    if found is not None:
        return known[found]
    if program not in _SCRIPT_RUNNERS:
        return _script_file_kind(program, plain)
    script = _script_in(program, plain)
    if script:
        if _FORMATS.search(script) and "--check" in words:
            return "lint"
        return script_kind(script)
    if program in ("make", "gmake") and first in ("", "all"):
        return "build"
    return None


def script_of(command: Command) -> str:
    """Return the name of the script or target that a runner such as `make` or `npm run` runs; empty if the
    command is no such runner."""
    return _script_in(command.program, _plain_words(command.program, command.words))


def _plain_words(program: str, words: Sequence[str]) -> list[str]:
    """Return the words of a command without options, their values, numbers and assignments."""
    plain = [
        word
        for at, word in enumerate(words)
        if word in ("--test", "--build")
        or not (
            word.startswith(("-", "+"))
            or word.isdigit()
            or _ASSIGNMENT.match(word)
            or (at > 0 and words[at - 1] in _OPTION_WITH_VALUE)
        )
    ]
    return plain[2:] if program == "yarn" and plain[:1] == ["workspace"] else plain


def _script_in(program: str, plain: Sequence[str]) -> str:
    """Return the script that a runner runs, by its words without options."""
    before = _SCRIPT_RUNNERS.get(program)
    if before is None or not plain:
        return ""
    if plain[0] in before and len(plain) > 1:
        return plain[1]
    if program in ("npm", "pnpm", "yarn") and plain[0] in _SUBCOMMANDS[program]:
        return "test" if plain[0] == "t" else plain[0]
    if "" not in before:
        return ""
    targets = plain if program in _MANY_TARGETS else plain[:1]
    checks = next((word for word in targets if script_kind(word) is not None), "")
    return checks or next((word for word in targets if _FORMATS.search(word)), "")


def formatter_of(command: Command) -> str:
    """Return the name of a program that changes the format of files or checks it, such as `ruff format`;
    empty if the command is none. O(1)."""
    program, words = command.program, command.words
    if "@" in program[1:]:
        program = program[: program.index("@", 1)]
    plain = [word for word in words[:MAX_OPTIONS] if not word.startswith("-")]
    if program == "python -m" and plain:
        program, plain = plain[0], plain[1:]
    if program in _FORMATTERS:
        return program
    name = f"{program} {plain[0]}" if plain else ""
    return name if name in _FORMATTERS else ""


def only_formats(command: Command) -> bool:
    """Return whether a command is a formatter that changes files, or prints them, and checks nothing."""
    name = formatter_of(command)
    if not name:
        return False
    checks, words = _FORMATTERS[name], command.words
    if not checks:
        return name == "go fmt" or not _CHANGES_FILES.isdisjoint(words)
    return not _CHANGES_FILES.isdisjoint(words) or set(checks.split()).isdisjoint(words)


def _script_file_kind(program: str, words: Sequence[str]) -> CheckKind | None:
    """Return what a script file checks, if the program is one or runs one."""
    if _INTERPRETERS.match(program) and words:
        name = words[0].rsplit("/", 1)[-1]
        if name in _SUBCOMMANDS:
            return _SUBCOMMANDS[name].get(words[1]) if len(words) > 1 else None
        # Names of other scripts say too little: `build_index.py` builds no program.
        return "test" if _SCRIPT_FILE.search(name) and script_kind(name) == "test" else None
    return script_kind(program) if _SCRIPT_FILE.search(program) else None


def script_kind(name: str) -> CheckKind | None:
    """Return what a script or target checks, by its name; None if the name does not say so."""
    return next((kind for pattern, kind in _SCRIPT_KINDS if pattern.search(name)), None)


class _Reader:
    """Collects the simple commands of a command line from its tokens."""

    def __init__(self, nested: int) -> None:
        self.found: list[Command] = []
        self.takes_file = False
        """Whether the next word is the file of a redirection."""
        self._nested = nested
        self._words: list[str] = []
        self._after = ""
        """The operator before the next command."""
        self._open: list[int] = []
        """For each open parenthesis, how many commands were found before it."""
        self._group: int | None = None
        """After a closing parenthesis, the number of the first command in the parentheses."""

    def word(self, word: str) -> None:
        """Take a word of the current command."""
        if self.takes_file:
            self.takes_file = False
        else:
            self._words.append(word)
            self._group = None

    def end_command(self, operator: str) -> None:
        """End the current command before an operator or at the end of a line."""
        self.takes_file = False
        is_pipe = operator in ("|", "|&")
        if self._words:
            self.found.extend(_simple(self._words, self._after, is_piped=is_pipe, nested=self._nested))
            self._words.clear()
            self._after = "" if operator in ("(", ")") else _list_operator(operator)
        elif self.found and operator not in ("(", ")", "\n"):
            self._after = operator
        if is_pipe and self._group is not None:
            self.found[self._group :] = [replace(one, is_piped=True) for one in self.found[self._group :]]
        self._group = None
        if operator == "(":
            self._open.append(len(self.found))
        elif operator == ")" and self._open:
            self._group = self._open.pop()


def _list_operator(operator: str) -> str:
    return ";" if operator == "\n" else operator


def _simple(words: Sequence[str], after: str, *, is_piped: bool, nested: int) -> Iterator[Command]:
    """Yield the command that these words are, or those that it runs in another shell."""
    rest = [_unquote(word) for word in words]
    at = _program_index(rest)
    if at >= len(rest) or rest[at] in _ENDS:
        return
    program, rest = rest[at].rsplit("/", 1)[-1], rest[at + 1 :]
    if program in _SHELLS and nested < MAX_NESTED:
        script = next((i for i, word in enumerate(rest) if re.fullmatch(r"-\w*c", word)), None)
        if script is not None and script + 1 < len(rest):
            for number, one in enumerate(commands_in(rest[script + 1], nested + 1)):
                yield replace(one, after=one.after if number else after, is_piped=one.is_piped or is_piped)
            return
        if rest and not rest[0].startswith("-"):
            program, rest = rest[0].rsplit("/", 1)[-1], rest[1:]
    if program.startswith("python") and "-m" in rest:
        module = rest.index("-m")
        # Options such as `-u` may come first, but no script.
        if module + 1 < len(rest) and all(word.startswith("-") for word in rest[:module]):
            program, rest = "python -m", rest[module + 1 :]
    yield Command(program, tuple(rest), after, is_piped)


def _program_index(words: Sequence[str]) -> int:
    """Return the index of the program in the words of a simple command: after assignments, wrappers and
    their options."""
    at = 0
    while at < len(words):
        word = words[at].rsplit("/", 1)[-1]
        if _ASSIGNMENT.match(words[at]) or word in _KEYWORDS:
            at += 1
        elif word == "command" and words[at + 1 : at + 2] in (["-v"], ["-V"]):
            return at
        elif word in _WRAPPER_WORDS:
            with_value = _WRAPPER_OPTIONS.get(word, ())
            at += 1
            while at < len(words) and (words[at].startswith("-") or words[at][:1].isdigit()):
                at += 2 if words[at] in with_value else 1
        elif word in _RUNNERS:
            next_ = _after_options(words, at + 1)
            if word == "docker" and words[next_ : next_ + 1] == ["compose"]:
                next_ = _after_options(words, next_ + 1)
            if next_ >= len(words) or words[next_] not in _RUNNERS[word]:
                return at
            if word == "mise" and "--" in words[next_:]:
                # `mise exec node@22 -- npm test`.
                at = words.index("--", next_) + 1
                continue
            at = _after_options(words, next_ + 1) + (word in _RUN_IN_A_PLACE)
        else:
            return at
    return at


def _after_options(words: Sequence[str], at: int) -> int:
    """Return the index of the first word from `at` on that is no option, nor the value of one."""
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _OPTION_WITH_VALUE else 1
    return at


def _unquote(word: str) -> str:
    """Return a word without its quotes and backslashes."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    return _QUOTED.sub(lambda found: found[1] or (found[2] or "").replace('\\"', '"') or found[3] or "", word)
