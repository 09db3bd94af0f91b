"""Who wrote each stretch of a message: a person, the model, a tool, a file, a program.

An author is decided where the text enters. An importer or a client that knows says so (`meta.author` of a
message or a block). Otherwise the role decides, and inside a user's text the form: tagged blocks and frames
that programs write, fenced code and quotations are not the person's words. Only the author `user` makes
constraints, goals and requests. docs/authors.md has the rule of each file format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, get_args

from msgspec import Struct

from compactd.messages import Author, Block, Document, Message, Text, ToolResult

AUTHORS: Final = frozenset(get_args(Author))

USER: Final[Author] = "user"
TOOL: Final[Author] = "tool"
FILE: Final[Author] = "file"
SUBAGENT: Final[Author] = "subagent"
SKILL: Final[Author] = "skill"
NOTIFICATION: Final[Author] = "notification"
REMINDER: Final[Author] = "reminder"
HOOK: Final[Author] = "hook"
SUMMARY: Final[Author] = "summary"
UNKNOWN: Final[Author] = "unknown"

_TYPED = """
task feedback answer user_query user_message user_request user_input user-query user-request user-message
query question objective prompt request
"""
TYPED_TAGS: Final = frozenset(_TYPED.split())
"""Tags whose content a person typed: Cline's `<task>`, `<feedback>` and `<answer>`, Cursor's `<user_query>`,
and names that say the same (seen 2026-11). They are an allow-list: any other tag that begins a line opens a
block that a program wrote."""

_TAGS_BY_AUTHOR: Final[tuple[tuple[Author, str], ...]] = (
    (
        REMINDER,
        """
        system-reminder system_reminder reminder system system-message system_message environment_context
        environment_details permissions permissions_instructions collaboration_mode turn_aborted
        local-command-caveat
        """,
    ),
    (NOTIFICATION, "task-notification task_notification notification"),
    (
        SUBAGENT,
        """
        teammate-message teammate_message agent-message subagent-result subagent_result subagent_notification
        """,
    ),
    (HOOK, "user-prompt-submit-hook session-start-hook hook hook_prompt"),
    (SKILL, "skill skills skill_content available_skills microagent extra_info"),
    (
        TOOL,
        """
        local-command-stdout local-command-stderr command-name command-message command-args command-contents
        bash-stdout bash-stderr bash-input stdout stderr output log logs tool_result tool_output tool-result
        tool-output tool_response function_results function_result tool_use_error error traceback
        user_shell_command
        """,
    ),
    (
        FILE,
        """
        instructions user_instructions user-instructions file file_contents file_content file-content files
        document documents document_content context code diff patch pre ide_selection ide_opened_file
        ide_diagnostics selected_text selection attached_files attached_file attachment attachments
        additional_data web_page mcp-resource mcp_resource resource folder_content url_content git_diff
        repo_info repository_info repository_instructions runtime_information uploaded_files rules
        """,
    ),
    (
        SUMMARY,
        """
        conversation transcript summary previous-summary context_summary conversation-summary read-files
        modified-files
        """,
    ),
)
_TAG_AUTHORS: Final[dict[str, Author]] = {
    tag: author for author, tags in _TAGS_BY_AUTHOR for tag in tags.split()
}
"""Tags that programs put into users' messages, and who wrote what they hold (Claude Code, Codex, Cline, Roo,
Cursor, OpenHands, Gemini CLI, Copilot; seen 2026-11). A block with another name is nobody's we know."""

_COMMON = """
system instructions notification hook skill skills rules resource selection summary error output log logs code
pre context file files document documents diff patch attachment attachments permissions
"""
_IN_LINES: Final = _TAG_AUTHORS.keys() - _COMMON.split()
"""Of those, the ones that open a block in the middle of a line too. The rest are names that people write."""

_NAME: Final = r"[A-Za-z][\w.-]*(?::[\w.-]+)*"
_TAG_END_CHARS: Final = 64
"""How far behind a closing tag's name its `>` is looked for."""
_CLOSING: Final = re.compile(rf"</\s*({_NAME})")

_WRAPPED: Final = re.compile(rf"\s*<({_NAME})[\s>]")

_OPENING: Final = re.compile(
    rf"(?P<fence>^[ \t]{{0,3}}(?:`{{3,}}|~{{3,}}))"
    rf"|(?P<quote>^[ \t]*>)"
    rf"|^[ \t]*<(?P<tag>{_NAME})(?=[\s/>]|\Z)"
    rf"|(?<!`)<(?P<inline>{'|'.join(sorted(map(re.escape, _IN_LINES), key=len, reverse=True))})(?=[\s/>])"
    r"|^(?P<frame>"
    r"--- Content from referenced files ---"
    r"|\[(?:tool|[a-z]+(?:_[a-z]+)+)(?: for '[^\n]*?')?\] Result:"
    r"|\w+(?:\[[^\]\n]*\])? hook (?:feedback|additional context|success|error|blocking error|stopped)\b"
    r"[^\n]*?:"
    r"|\[Request interrupted by user[^\]\n]*\]"
    r")",
    re.MULTILINE | re.IGNORECASE,
)

_KNOWN: Final = re.compile(
    rf"<({'|'.join(sorted(map(re.escape, _TAG_AUTHORS), key=len, reverse=True))})(?=[\s/>])", re.IGNORECASE
)
"""A known block's opening tag, wherever it stands."""

_WHOLE: Final[tuple[tuple[re.Pattern[str], Author], ...]] = (
    (re.compile(r"\s*Caveat: The messages below were generated by the user while running"), REMINDER),
    (re.compile(r"\s*This session is being continued from a previous conversation"), SUMMARY),
    (re.compile(r"\s*(?:OBSERVATION|Observation):\s"), TOOL),
    # OpenHands without function calling (openhands/llm/fn_call_converter.py, read 2026-11)
    (re.compile(r"\s*EXECUTION RESULT of \[[^\]\n]{1,80}\]:"), TOOL),
    (re.compile(r"\s*Base directory for this skill:"), SKILL),
    (re.compile(r"\s*# AGENTS\.md instructions for\b"), FILE),
    (re.compile(r"\s*\[SYSTEM NOTIFICATION\b"), NOTIFICATION),
    (re.compile(r"\s*(?:A background agent|Async agent|Another Claude session)\b[^\n]{0,80}:"), SUBAGENT),
    (re.compile(r"\s*Another language model started to solve this problem\b"), SUMMARY),
    (re.compile(r"\s*I ran the following shell command:\n```"), TOOL),
    (re.compile(r"\s*Here is (?:the|a summary of changes in the) user's editor context\b"), FILE),
)
"""How texts begin that a program wrote as a whole (Claude Code, Codex, Gemini CLI,
SWE-agent; seen 2026-11)."""

_COMMAND: Final = re.compile(
    r"\s*<command-(?:name|message)>[^<]*</command-(?:name|message)>\s*"
    r"(?:<command-(?:name|message)>[^<]*</command-(?:name|message)>\s*)?"
    r"<command-args>(?P<typed>.*)</command-args>\s*",
    re.DOTALL,
)
"""A slash command of Claude Code's, from the text's first character to its last: the person typed the
arguments (2.1.39, 2.1.330; seen 2026-11). In the middle of a text the same tags are a program's."""

_IDE: Final = "# Context from my IDE setup:"
_IDE_REQUEST: Final = re.compile(r"^## My request for Codex:[ \t]*\n?", re.MULTILINE)
"""Codex's editor extension: what the editor shows, and behind the last such heading what was typed."""

_REFERENCED_END: Final = "--- End of content ---"


class Span(Struct, frozen=True, array_like=True, gc=False):
    """A stretch of a text."""

    author: Author
    start: int
    """Code points from the text's beginning, inclusive."""
    end: int
    """The same, exclusive."""
    pasted: bool = False
    """A person put it there by its form: fenced code or a quotation. It counts as asked, not as said."""


class Stretch(Struct, frozen=True, array_like=True, gc=False):
    """A piece of a message's text, and who wrote it."""

    author: Author
    text: str


def author_of(message: Message, block: Text | Document | None = None) -> Author:
    """Who wrote a message, or a block of it, as far as role and marks say: what stands inside a text is not
    looked at. `user` only for the role `user`, and never for what a program or a summariser wrote. O(1)."""
    meta = message.meta
    given = None if block is None or block.meta is None else block.meta.author
    if meta is not None:
        if meta.type == "compaction_summary":
            return SUMMARY
        given = given or meta.author
    author = None if given is None else known_author(given)
    role = message.role
    if role == "user":
        if meta is not None and (meta.synthetic or meta.type or meta.kind):
            by_program: Author = TOOL if meta.kind == "bash_execution" else UNKNOWN
            return by_program if author is None or author == USER else author
        if isinstance(block, Document):
            return author if author is not None and author != USER else FILE
        return author or USER
    if author is not None and author not in (USER, "assistant"):
        return author
    if role == "assistant":
        return "assistant"
    return TOOL if role == "tool" else REMINDER


def known_author(name: str) -> Author:
    """The author of this name; `unknown` for a name that this version does not know."""
    return name if name in AUTHORS else UNKNOWN  # type: ignore[return-value]  # told by the set


def stretches(message: Message) -> Iterator[Stretch]:
    """What the message says, stretch by stretch in its order, each with its author. Calls and pictures are
    left out. O(characters)."""
    for block in message.content:
        yield from stretches_of(message, block)


def stretches_of(message: Message, block: Block) -> Iterator[Stretch]:
    """The same of one block of the message."""
    match block:
        case Text(text=text):
            author = author_of(message, block)
            if author != USER:
                yield Stretch(author, text)
                return
            for span in spans(text):
                yield Stretch(span.author, text[span.start : span.end])
        case Document(text=str() as text):
            yield Stretch(author_of(message, block), text)
        case ToolResult(content=content):
            if isinstance(content, str):
                yield Stretch(TOOL, content)
                return
            for inner in content:
                if isinstance(inner, Text | Document) and inner.text is not None:
                    yield Stretch(TOOL, inner.text)
        case _:
            pass


def is_typed(message: Message) -> bool:
    """True for a message in which a person asks something: it has words of theirs, or code or a quotation
    that they sent. What programs write in the user's role is no request. O(characters) at worst; O(1) for a
    message that begins with a person's words."""
    if message.role != "user":
        return False
    for block in message.content:
        if isinstance(block, Text) and author_of(message, block) == USER and _asks(block.text):
            return True
    return False


def _asks(text: str) -> bool:
    begin = text.lstrip()
    if not begin:
        return False
    if not _by_program(begin) and not begin.startswith(_IDE) and _OPENING.match(begin) is None:
        return True
    return any(
        (span.author == USER or span.pasted) and not text[span.start : span.end].isspace()
        for span in spans(text)
    )


def _by_program(text: str) -> Author | None:
    return next((author for pattern, author in _WHOLE if pattern.match(text) is not None), None)


def author_of_wrapped(text: str) -> Author | None:
    """The author of a text that is one tagged block, from its first character to its last; none for any
    other text. What such a block holds is never looked at. O(length of its tags)."""
    begin = _WRAPPED.match(text)
    if begin is None or (name := begin[1].lower()) in TYPED_TAGS:
        return None
    closing = text.rstrip()[-len(name) - _TAG_END_CHARS :].lower().rpartition("</")[2]
    if not closing.endswith(">") or closing[:-1].split()[:1] != [name]:
        return None
    return _TAG_AUTHORS.get(name, UNKNOWN)


def spans(text: str) -> tuple[Span, ...]:
    """The stretches of a text that came in the user's role with no author named, in order and without gaps.

    A tagged block ends at the last closing tag of its name, or with the text: what it holds cannot close it.
    A known block that opens inside another one belongs to it, up to its own last closing tag: otherwise what
    the second one holds could close the first. O(characters).
    """
    author = _by_program(text)
    if author is not None:
        return (Span(author, 0, len(text)),)
    command = _COMMAND.fullmatch(text)
    if command is not None:
        return tuple(_of_command(text, *command.span("typed")))
    found = _OPENING.search(text)
    ide = text.lstrip().startswith(_IDE)
    if found is None and not ide:
        return (Span(USER, 0, len(text)),)
    if ide:
        heads = list(_IDE_REQUEST.finditer(text))
        typed = heads[-1].end() if heads else len(text)
        rest = spans(text[typed:]) if typed < len(text) else ()
        return (
            Span(FILE, 0, typed),
            *(Span(one.author, one.start + typed, one.end + typed, one.pasted) for one in rest),
        )
    return tuple(_Scan(text).run())


def _of_command(text: str, start: int, end: int) -> Iterator[Span]:
    yield Span(TOOL, 0, start)
    if start < end:
        for one in _Scan(text[start:end]).run():
            yield Span(one.author, one.start + start, one.end + start, one.pasted)
    yield Span(TOOL, end, len(text))


class _Scan:
    """One run over a text with blocks in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._closings: dict[str, int] = {}
        for found in _CLOSING.finditer(text):
            self._closings[found[1].lower()] = found.end()

    def run(self) -> Iterator[Span]:
        text, size = self._text, len(self._text)
        typed = at = 0
        while at < size and (found := _OPENING.search(text, at)) is not None:
            span, at = self._block(found)
            if span is None:
                continue
            if span.start > typed:
                yield Span(USER, typed, span.start)
            yield span
            typed = at = span.end
        if typed < size:
            yield Span(USER, typed, size)

    def _block(self, found: re.Match[str]) -> tuple[Span | None, int]:
        """(the block that begins here, where to look on); none where it is a person's after all."""
        text, start = self._text, found.start()
        if (fence := found["fence"]) is not None:
            return Span(UNKNOWN, start, self._fence_end(fence.strip(), found.end()), pasted=True), 0
        if found["quote"] is not None:
            return Span(UNKNOWN, start, self._line_end(start), pasted=True), 0
        if (frame := found["frame"]) is not None:
            return self._frame(frame, start), 0
        name = (found["tag"] or found["inline"]).lower()
        if name in TYPED_TAGS:
            return None, found.end()
        author = _TAG_AUTHORS.get(name, UNKNOWN)
        closed = self._closings.get(name, -1)
        if closed > start:
            end = self._with_opened(found.end(), self._tag_end(closed))
            return Span(author, start, end), 0
        line_end = self._line_end(start)
        if text[start:line_end].rstrip().endswith("/>") or (
            name not in _TAG_AUTHORS and not ("-" in name or "_" in name)
        ):
            return Span(author, start, line_end), 0
        return Span(author, start, len(text)), 0

    def _with_opened(self, at: int, end: int) -> int:
        """The end of a block that ends at `end`, and of the known blocks that open in it from `at` on."""
        while (found := _KNOWN.search(self._text, at, end)) is not None:
            at = found.end()
            closed = self._closings.get(found[1].lower(), -1)
            if closed > end:
                end = self._tag_end(closed)
        return end

    def _tag_end(self, closed: int) -> int:
        """Where a closing tag ends whose name ends at `closed`, exclusive."""
        end = self._text.find(">", closed, closed + _TAG_END_CHARS)
        return closed if end < 0 or self._text[closed:end].strip() else end + 1

    def _frame(self, frame: str, start: int) -> Span:
        text = self._text
        if frame.startswith("---"):
            end = text.rfind(_REFERENCED_END, start)
            return Span(FILE, start, len(text) if end < 0 else end + len(_REFERENCED_END))
        if frame.lower().startswith("[request"):
            return Span(NOTIFICATION, start, start + len(frame))
        return Span(TOOL if frame.startswith("[") else HOOK, start, len(text))

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end + 1

    def _fence_end(self, fence: str, at: int) -> int:
        """Where the fence is closed: by a line of at least as many of its signs and nothing else."""
        close = re.compile(rf"^[ \t]{{0,3}}{re.escape(fence)}{re.escape(fence[0])}*[ \t]*$", re.MULTILINE)
        found = close.search(self._text, self._line_end(at))
        return len(self._text) if found is None else self._line_end(found.start())
