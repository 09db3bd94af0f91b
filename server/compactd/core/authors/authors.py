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

from compactd.protocol.messages import Author, Block, Document, Message, Text, ToolResult

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

_PROMPT_TAGS: Final = frozenset(
    ("requirements", "requirement", "constraints", "constraint", "important", "critical", "rule", "limits")
)
_EMPHASIS_TAGS: Final = frozenset(("b", "strong", "em", "i", "u", "mark"))
"""Tags that only set words off: they open no block."""
_RULE_TAGS: Final = frozenset(("instructions", "rules"))
"""Names by which people part their prompts. Agents put files under the second two: those are typed only
behind the person's own first words, and not beside a tag for what was typed."""

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
        additional_data web_page web_search web_search_result web_search_results search_result search_results
        mcp-resource mcp_resource resource folder_content url_content git_diff
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

_OWN_NAMES: Final = frozenset(tag for tag in _TAG_AUTHORS if "-" in tag or "_" in tag)
"""Of those, the names that nobody writes in prose: they open a block anywhere, closed or not."""

_UNSEEN: Final = "\ufeff\u00ad\u200b-\u200f\u2060-\u2064"
"""Signs without width, which could stand before what begins a line."""
_BLANKS: Final = (
    "\ufeff\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064 \t\r\n\f\v\xa0\u3000"
)

_NAME: Final = r"[A-Za-z][\w.-]*(?::[\w.-]+)*"
_MARKER: Final = r"(?:[-*+•‣–]|\(?(?:\d{1,3}|[A-Za-z])[.)]|\[[ xX]\])"
_LINE: Final = rf"^[ \t\xa0\u3000{_UNSEEN}]*+(?:{_MARKER}[ \t]++[{_UNSEEN}]*+)*+"
"""What may stand on a line before the sign that opens a block: blanks, and a list's markers."""
_TAG_END_CHARS: Final = 64
"""How far behind a closing tag's name its `>` is looked for."""
_CLOSING: Final = re.compile(rf"[<＜][/／]\s*({_NAME})")
_REST: Final = re.compile(r"(?P<attributes>[^<>＜＞]{0,1000})[>＞](?P<blank>[ \t\r]*(?:\n|\Z))?")
"""An opening tag behind its name, and whether its line holds nothing more."""

_WRAPPED: Final = re.compile(rf"[\s{_UNSEEN}]*[<＜]({_NAME})[\s>＞]")

_NARROW: Final = str.maketrans("＜＞／", "<>/")

_EVENTS: Final = (
    "(?:Pre|Post)Tool(?:Use|UseFailure|Batch)|UserPrompt(?:Submit|Expansion)|Stop(?:Failure)?"
    "|Subagent(?:Start|Stop)|Session(?:Start|End)|(?:Pre|Post)Compact|PreCompress|Notification"
    "|Permission(?:Request|Denied)|Setup|TeammateIdle|Task(?:Created|Completed)|ConfigChange|CwdChanged"
    "|FileChanged|Worktree(?:Create|Remove)|InstructionsLoaded|Elicitation(?:Result)?"
    "|(?:Before|After)(?:Tool|Agent|Model)|BeforeToolSelection"
)
"""The events that hooks are run at (Claude Code, Gemini CLI; 2026-11)."""
_RESULT: Final = r"\[(?:tool|[a-z]+(?:_[a-z]+)+)(?: for '[^\n]*?')?\] Result:"

_OPENING: Final = re.compile(
    rf"(?P<fence>{_LINE}(?P<sign>`{{3,}}+(?=[^`\n]*$)|~{{3,}}+(?=[^~\n]*$)))"
    rf"|(?P<quote>{_LINE}[>＞])"
    rf"|(?P<first>{_LINE})?(?<!`)[<＜](?:(?P<tag>{_NAME})(?=[\s/>＞／]|\Z)|(?P<comment>!--)|(?P<data>!\[CDATA\[))"
    r"|^(?P<frame>"
    r"--- Content from referenced files ---"
    rf"|{_RESULT}"
    rf"|(?-i:{_EVENTS})(?::[\w*|.-]+)?(?:\[[^\]\n]*\])? hook "
    r"(?:feedback|additional context|success|error|blocking error|stopped)\b[^\n]*?:"
    r"|\[Request interrupted by user[^\]\n]*\]"
    r")",
    re.MULTILINE | re.IGNORECASE,
)

_FRAME: Final = re.compile(rf"^{_RESULT.replace('(?:tool|', '(tool|', 1)}", re.MULTILINE)
_TYPED_TAG: Final = re.compile(
    rf"[\s{_UNSEEN}]*(?:(?:The user|New |You seem)[^\n<]*)?\s*<(?:{'|'.join(sorted(TYPED_TAGS))})[\s>]"
)
"""How a text of Cline's begins that holds what a person typed; a fixed sentence may stand before the tag."""
_FEEDBACK: Final = "<feedback"
"""The only tag in which Cline puts a person's words after the result of a tool that does not ask."""
ASKING_TOOLS: Final = frozenset(("ask_followup_question", "plan_mode_respond", "attempt_completion"))
"""Tools of Cline's whose result is what the person answered."""

_KNOWN: Final = re.compile(
    rf"[<＜]({'|'.join(sorted(map(re.escape, _TAG_AUTHORS), key=len, reverse=True))})(?=[\s/>＞／])",
    re.IGNORECASE,
)
"""A known block's opening tag, wherever it stands."""

_WHOLE: Final[tuple[tuple[re.Pattern[str], Author], ...]] = (
    (re.compile(r"\s*Caveat: The messages below were generated by the user while running"), REMINDER),
    (re.compile(r"\s*This session is being continued from a previous conversation"), SUMMARY),
    # OpenHands without function calling (openhands/llm/fn_call_converter.py, read 2026-11)
    (re.compile(r"\s*EXECUTION RESULT of \[[^\]\n]{1,80}\]:"), TOOL),
    (re.compile(r"\s*Base directory for this skill:"), SKILL),
    (re.compile(r"\s*# AGENTS\.md instructions for\b"), FILE),
    (re.compile(r"\s*\[SYSTEM NOTIFICATION\b"), NOTIFICATION),
    (
        re.compile(
            r"\s*(?:A background agent (?:completed|finished|failed|stopped)\b|Async agent \""
            r"|Another Claude session sent\b)[^\n]{0,80}:"
        ),
        SUBAGENT,
    ),
    (re.compile(r"\s*Another language model started to solve this problem\b"), SUMMARY),
    (re.compile(r"\s*I ran the following shell command:\n```"), TOOL),
    (re.compile(r"\s*Here is (?:the|a summary of changes in the) user's editor context\b"), FILE),
)
"""How texts begin that a program wrote as a whole (Claude Code, Codex, Gemini CLI,
SWE-agent; seen 2026-11)."""

_OBSERVATION: Final = re.compile(rf"[\s{_UNSEEN}*_]*observation(?:[ \t]?#?\d+)?[*_]*:[*_]*\s", re.IGNORECASE)
"""How agents without tool calls give output back (SWE-agent, ReAct loops; seen 2026-11). A person may begin a
message so too: it is the person's if the message, or its format, names the user as its author."""

_INVOKED: Final = ("<command-message>", "<command-name>")
"""How Claude Code begins the message for a slash command (seen 2026-11)."""
_COMMAND: Final = re.compile(
    r"\s*<command-(?:name|message)>[^<]*</command-(?:name|message)>\s*"
    r"(?:<command-(?:name|message)>[^<]*</command-(?:name|message)>\s*)?"
    r"<command-args>(?P<typed>.*)</command-args>\s*",
    re.DOTALL,
)
"""A slash command of Claude Code's, from the text's first character to its last: the person typed the
arguments (2.1.39, 2.1.330; seen 2026-11). In the middle of a text the same tags are a program's."""

_IDE: Final = ("# Context from my IDE setup:", "# Files mentioned by the user:")
_IDE_REQUEST: Final = re.compile(r"^## My request(?: for Codex)?:[ \t]*\n?", re.MULTILINE)
"""Codex's editor extension and app: what the editor shows, or the names and paths of files (a pasted text has
its first words as its name), and after the last such heading what was typed. The app writes
`## My request:` since 2026-08 (public transcripts, seen 2026-11)."""

_REFERENCED_END: Final = "--- End of content ---"


BY_PROGRAM: Final = frozenset(
    (
        "bash_execution",
        "developer",
        "aider_started",
        "aider_output",
        "compaction_summary",
        "branch_summary",
        "custom",
        "custom_message",
    )
)
"""Values of `meta.kind` and `meta.type` that say that a program wrote a message of role `user`."""


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
        if meta is not None and (meta.synthetic or meta.type in BY_PROGRAM or meta.kind in BY_PROGRAM):
            by_program: Author = TOOL if meta.kind == "bash_execution" else UNKNOWN
            return by_program if author is None or author == USER else author
        if isinstance(block, Document):
            return author if author is not None and author != USER else FILE
        if author is None and block is not None and id(block) in _under_frames(message.content):
            return TOOL
        return author or USER
    if author is not None and author not in (USER, "assistant"):
        return author
    if role == "assistant":
        return "assistant"
    return TOOL if role == "tool" else REMINDER


_newest: list[tuple[tuple[Block, ...], frozenset[int]]] = []


def _under_frames(content: tuple[Block, ...]) -> frozenset[int]:
    """The ids of the texts that an earlier text's `[read_file for 'x'] Result:` announces: all that follow,
    except a `<feedback>` right after the first one, and up to what a tag says a person typed if the tool
    asks. O(characters), once for each message whose blocks are asked about one after the other."""
    if len(content) < 2:
        return frozenset()
    if _newest and (known := _newest[0])[0] is content:
        return known[1]
    under: set[int] = set()
    tool, held = "", 0
    for block in content:
        if not isinstance(block, Text):
            continue
        text, given = block.text, block.meta is not None and block.meta.author is not None
        if tool and not given and tool in ASKING_TOOLS and _TYPED_TAG.match(text) is not None:
            tool = ""
        if tool and author_of_wrapped(text) != REMINDER:
            # What a person adds to a result comes right after it. Later texts may be parts of the result.
            is_added = held == 1 and _TYPED_TAG.match(text) is not None and _FEEDBACK in text
            if not given and not is_added:
                under.add(id(block))
            held += 1
        found = None if tool else _open_frame(text)
        if found is not None:
            tool, held = found[0], int(found[1])
    _newest[:] = [(content, frozenset(under))]
    return frozenset(under)


def _open_frame(text: str) -> tuple[str, bool] | None:
    """(the tool whose result runs to the text's end, whether the text holds any of it)."""
    if _FRAME.search(text) is None:
        return None
    last = spans(text)[-1]
    head = _FRAME.match(text, last.start)
    return None if head is None or last.author != TOOL else (head[1], bool(text[head.end() :].strip()))


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
            for span in spans_of(message, block):
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
        if isinstance(block, Text) and author_of(message, block) == USER and _asks(message, block):
            return True
    return False


def _asks(message: Message, block: Text) -> bool:
    text = block.text
    begin = text.lstrip()
    if not begin:
        return False
    if (
        not _by_program(begin, is_named_user(message, block))
        and not begin.startswith(_IDE)
        and _OPENING.match(begin) is None
    ):
        return True
    if begin.startswith(_INVOKED):
        # A person invoked a command. Its text is the program's: it is a request, and says nothing.
        return True
    return any(
        (span.author == USER or span.pasted) and not text[span.start : span.end].isspace()
        for span in spans_of(message, block)
    )


def is_named_user(message: Message, block: Text) -> bool:
    """Whether a block, or the message around it, names the user as its author. O(1)."""
    given = block.meta.author if block.meta is not None else None
    if given is None and message.meta is not None:
        given = message.meta.author
    return given == USER


def begins_as_observation(text: str) -> bool:
    """Whether a text begins as agents without tool calls give a tool's output back. O(1)."""
    return _OBSERVATION.match(text) is not None


def _by_program(text: str, is_named: bool) -> Author | None:
    if text[:1] in _BLANKS:
        text = text.lstrip(_BLANKS)
    if not is_named and begins_as_observation(text):
        return TOOL
    return next((author for pattern, author in _WHOLE if pattern.match(text) is not None), None)


def author_of_wrapped(text: str) -> Author | None:
    """The author of a text that is one tagged block, from its first character to its last; none for any
    other text. What such a block holds is never looked at. O(length of its tags)."""
    begin = _WRAPPED.match(text)
    if begin is None or (name := begin[1].lower()) in TYPED_TAGS:
        return None
    closing = text.rstrip()[-len(name) - _TAG_END_CHARS :].lower().translate(_NARROW).rpartition("</")[2]
    if not closing.endswith(">") or closing[:-1].split()[:1] != [name]:
        return None
    return _TAG_AUTHORS.get(name, UNKNOWN)


def spans_of(message: Message, block: Text) -> tuple[Span, ...]:
    """The stretches of a text block whose author is the user, as far as `author_of` sees. O(characters)."""
    return spans(block.text, is_named=is_named_user(message, block))


def spans(text: str, *, is_named: bool = False) -> tuple[Span, ...]:
    """The stretches of a text that came in the user's role, in order and without gaps. `is_named`: the user
    is named as its author.

    A tagged block ends at the last closing tag of its name, or with the text: what it holds cannot close it.
    A known block that opens inside another one belongs to it, up to its own last closing tag: otherwise what
    the second one holds could close the first. O(characters).
    """
    author = _by_program(text, is_named)
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
        self._last_data = text.rfind("]]>")
        self._no_comment_ends = False
        self._is_prompt: bool | None = None
        self._line: tuple[int, int] = (0, -1)

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
        start = found.start()
        if (fence := found["fence"]) is not None:
            return Span(UNKNOWN, start, self._fence_end(fence, found["sign"], found.end()), pasted=True), 0
        if found["quote"] is not None:
            return Span(UNKNOWN, start, self._line_end(start), pasted=True), 0
        if (frame := found["frame"]) is not None:
            return self._frame(frame, start), 0
        if found["comment"] is not None or found["data"] is not None:
            return self._marked_up(found)
        return self._tagged(found)

    def _marked_up(self, found: re.Match[str]) -> tuple[Span | None, int]:
        """A comment ends where it is first closed, as in HTML; CDATA at the last end of one."""
        text, start = self._text, found.start()
        if found["comment"] is not None:
            end = -1 if self._no_comment_ends else text.find("-->", found.end())
            self._no_comment_ends = end < 0
        else:
            end = self._last_data
        if end >= found.end():
            return Span(UNKNOWN, start, end + 3), 0
        return (None, found.end()) if found["first"] is None else (Span(UNKNOWN, start, len(text)), 0)

    def _tagged(self, found: re.Match[str]) -> tuple[Span | None, int]:
        text, start = self._text, found.start()
        name = found["tag"].lower()
        if (
            name in TYPED_TAGS
            or name in _PROMPT_TAGS
            or name in _EMPHASIS_TAGS
            or (name in _RULE_TAGS and self._begins_typed())
        ):
            return None, found.end()
        author = _TAG_AUTHORS.get(name, UNKNOWN)
        is_known = name in _TAG_AUTHORS
        looks_made = is_known or "-" in name or "_" in name
        begins_line = found["first"] is not None
        rest = _REST.match(text, found.end())
        has_attributes = rest is not None and bool(rest["attributes"].strip("/／ \t\r\n"))
        ends_line = rest is not None and rest["blank"] is not None
        closed = self._closings.get(name, -1)
        opens = (
            begins_line or looks_made or ((has_attributes or ends_line) and closed > self._line_end(start))
        )
        if closed > start and opens:
            return Span(author, start, self._with_opened(found.end(), self._tag_end(closed))), 0
        if rest is not None and rest["attributes"].rstrip().endswith(("/", "／")):
            return (Span(author, start, rest.end()), 0) if begins_line else (None, found.end())
        if name in _OWN_NAMES or (is_known and has_attributes and (begins_line or ends_line)):
            return Span(author, start, len(text)), 0
        if not begins_line or (rest is not None and not ends_line and text[rest.end()].isspace()):
            return None, found.end()
        if looks_made and (ends_line or rest is not None):
            return Span(author, start, len(text)), 0
        return Span(author, start, self._line_end(start)), 0

    def _begins_typed(self) -> bool:
        """True where the text begins with a person's own words, and no tag says which words are typed."""
        if self._is_prompt is None:
            first = _OPENING.search(self._text)
            own = self._text if first is None else self._text[: first.start()]
            self._is_prompt = bool(own.strip(_BLANKS)) and TYPED_TAGS.isdisjoint(self._closings)
        return self._is_prompt

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
        behind = self._text[closed : closed + _TAG_END_CHARS]
        at = next((at for at, sign in enumerate(behind) if sign in ">＞"), -1)
        return closed if at < 0 or behind[:at].strip() else closed + at + 1

    def _frame(self, frame: str, start: int) -> Span:
        text = self._text
        if frame.startswith("---"):
            end = text.rfind(_REFERENCED_END, start)
            return Span(FILE, start, len(text) if end < 0 else end + len(_REFERENCED_END))
        if frame.lower().startswith("[request"):
            return Span(NOTIFICATION, start, start + len(frame))
        return Span(TOOL if frame.startswith("[") else HOOK, start, len(text))

    def _line_end(self, at: int) -> int:
        start, end = self._line
        if not start <= at < end:
            end = self._text.find("\n", at)
            end = len(self._text) if end < 0 else end + 1
            self._line = (at, end)
        return end

    def _fence_end(self, opening: str, fence: str, at: int) -> int:
        """Where the fence is closed: by a line of at least as many of its signs and nothing else, which may
        stand as far in as what opened it and three blanks more."""
        inside = len(opening) - len(fence) + 3
        close = re.compile(
            rf"^[ \t]{{0,{inside}}}{re.escape(fence)}{re.escape(fence[0])}*[ \t]*$", re.MULTILINE
        )
        found = close.search(self._text, self._line_end(at))
        return len(self._text) if found is None else self._line_end(found.start())
