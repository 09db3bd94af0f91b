"""Determine who wrote each stretch of a message: a person, the model, a tool, a file, or a program.

The first of these that names an author decides:

1. `meta.author` of the block or of the message, which an importer or a client sets if it knows the author;
2. the role of the message, unless it is `user`;
3. in a message of role `user`, the form of the text. Tagged blocks (`<system-reminder>…`), stretches that
   begin with a fixed line of a program (frames, such as `[read_file for 'x'] Result:`), fenced code and
   quotations are not the person's words.

Only text with the author `user` can state constraints, goals and requests. docs/authors.md has the rule for
each file format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, get_args

from msgspec import Struct

from compactd.core.text.lazy_patterns import LazyPattern
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
and names with the same meaning (seen 2026-11). This is an allow-list: a tag at the beginning of a line that
is neither here nor in the next three sets opens a block that a program wrote."""

_PROMPT_TAGS: Final = frozenset(
    ("requirements", "requirement", "constraints", "constraint", "important", "critical", "rule", "limits")
)
_EMPHASIS_TAGS: Final = frozenset(("b", "strong", "em", "i", "u", "mark"))
"""Tags that only mark emphasis; they open no block."""
_RULE_TAGS: Final = frozenset(("instructions", "rules"))
"""Tags that people and agents use: people to structure a prompt, agents to insert files. Their content counts
as the person's only if the message begins with untagged words and contains no tag of `TYPED_TAGS`."""

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
"""Tags that programs put into users' messages, and the author of their content (Claude Code, Codex, Cline,
Roo, Cursor, OpenHands, Gemini CLI, Copilot; seen 2026-11). A block with any other tag has the author
`unknown`."""

_UNMISTAKABLE_TAGS: Final = frozenset(tag for tag in _TAG_AUTHORS if "-" in tag or "_" in tag)
"""Tags of `_TAG_AUTHORS` that nobody writes in prose, because they contain `-` or `_`. They open a block
anywhere in a text, even if no closing tag follows."""

_INVISIBLE: Final = "\ufeff\u00ad\u200b-\u200f\u2060-\u2064"
"""Zero-width characters, for a character class. At the beginning of a line they are ignored, because they
could hide a tag."""
_BLANKS: Final = (
    "\ufeff\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064 \t\r\n\f\v\xa0\u3000"
)

_NAME: Final = r"[A-Za-z][\w.-]*(?::[\w.-]+)*"
_MARKER: Final = r"(?:[-*+•‣–]|\(?(?:\d{1,3}|[A-Za-z])[.)]|\[[ xX]\])"
_LINE: Final = rf"^[ \t\xa0\u3000{_INVISIBLE}]*+(?:{_MARKER}[ \t]++[{_INVISIBLE}]*+)*+"
"""What may be on a line before the sign that opens a block: white space and list markers."""
_TAG_END_CHARS: Final = 64
"""The `>` of a closing tag must be within this many characters after the tag's name."""
_CLOSING: Final = LazyPattern(rf"[<＜][/／]\s*({_NAME})")
_TAG_REST: Final = LazyPattern(r"(?P<attributes>[^<>＜＞]{0,1000})[>＞](?P<blank>[ \t\r]*(?:\n|\Z))?")
"""The rest of an opening tag after its name, and whether the line ends after the tag."""

_WRAPPED: Final = LazyPattern(rf"[\s{_INVISIBLE}]*[<＜]({_NAME})[\s>＞]")

_NARROW: Final = str.maketrans("＜＞／", "<>/")

_EVENTS: Final = (
    "(?:Pre|Post)Tool(?:Use|UseFailure|Batch)|UserPrompt(?:Submit|Expansion)|Stop(?:Failure)?"
    "|Subagent(?:Start|Stop)|Session(?:Start|End)|(?:Pre|Post)Compact|PreCompress|Notification"
    "|Permission(?:Request|Denied)|Setup|TeammateIdle|Task(?:Created|Completed)|ConfigChange|CwdChanged"
    "|FileChanged|Worktree(?:Create|Remove)|InstructionsLoaded|Elicitation(?:Result)?"
    "|(?:Before|After)(?:Tool|Agent|Model)|BeforeToolSelection"
)
"""Names of the events at which agents run hooks (Claude Code, Gemini CLI; 2026-11)."""
_RESULT: Final = r"\[(?:tool|[a-z]+(?:_[a-z]+)+)(?: for '[^\n]*?')?\] Result:"

_OPENING: Final = LazyPattern(
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

_FRAME: Final = LazyPattern(rf"^{_RESULT.replace('(?:tool|', '(tool|', 1)}", re.MULTILINE)
_TYPED_TAG: Final = LazyPattern(
    rf"[\s{_INVISIBLE}]*(?:(?:The user|New |You seem)[^\n<]*)?\s*<(?:{'|'.join(sorted(TYPED_TAGS))})[\s>]"
)
"""The beginning of a text from Cline that contains words a person typed: a tag of `TYPED_TAGS`, sometimes
after a fixed sentence such as `The user …`."""
_FEEDBACK: Final = "<feedback"
"""The tag in which Cline adds a person's comment to the result of a tool. (The tools in `ASKING_TOOLS` use
other tags too.)"""
ASKING_TOOLS: Final = frozenset(("ask_followup_question", "plan_mode_respond", "attempt_completion"))
"""Cline's tools that ask the person something. Their result is the person's answer."""

_KNOWN: Final = LazyPattern(
    rf"[<＜]({'|'.join(sorted(map(re.escape, _TAG_AUTHORS), key=len, reverse=True))})(?=[\s/>＞／])",
    re.IGNORECASE,
)
"""An opening tag of `_TAG_AUTHORS`, anywhere in a text."""

_WHOLE: Final[tuple[tuple[LazyPattern, Author], ...]] = (
    (LazyPattern(r"\s*Caveat: The messages below were generated by the user while running"), REMINDER),
    (LazyPattern(r"\s*This session is being continued from a previous conversation"), SUMMARY),
    # OpenHands without function calling (openhands/llm/fn_call_converter.py, read 2026-11)
    (LazyPattern(r"\s*EXECUTION RESULT of \[[^\]\n]{1,80}\]:"), TOOL),
    (LazyPattern(r"\s*Base directory for this skill:"), SKILL),
    (LazyPattern(r"\s*# AGENTS\.md instructions for\b"), FILE),
    (LazyPattern(r"\s*\[SYSTEM NOTIFICATION\b"), NOTIFICATION),
    (
        LazyPattern(
            r"\s*<task-notification>[^\0]{0,4000}?</task-notification>\s{0,9}"
            r"Read the output file to retrieve the result: \S+\s*\Z"
        ),
        NOTIFICATION,
    ),
    (
        LazyPattern(
            r"\s*(?:A background agent (?:completed|finished|failed|stopped)\b|Async agent \""
            r"|Another Claude session sent\b)[^\n]{0,80}:"
        ),
        SUBAGENT,
    ),
    (LazyPattern(r"\s*Another language model started to solve this problem\b"), SUMMARY),
    (LazyPattern(r"\s*I ran the following shell command:\n```"), TOOL),
    (LazyPattern(r"\s*Here is (?:the|a summary of changes in the) user's editor context\b"), FILE),
)
"""(pattern, author): a text that begins with the pattern was written completely by a program, with this
author (Claude Code, Codex, Gemini CLI, SWE-agent; seen 2026-11)."""

_OBSERVATION: Final = LazyPattern(
    rf"[\s{_INVISIBLE}*_]*observation(?:[ \t]?#?\d+)?[*_]*:[*_]*\s", re.IGNORECASE
)
"""The label `Observation:`, with which agents without tool calls begin tool output (SWE-agent, ReAct loops;
seen 2026-11). A person may begin a message like this too. The text counts as the person's only if
`meta.author` of the block or of the message is `user`."""

_INVOKED: Final = ("<command-message>", "<command-name>")
"""Tags with which Claude Code begins the message for a slash command (seen 2026-11)."""
_COMMAND: Final = LazyPattern(
    r"\s*<command-(?:name|message)>[^<]*</command-(?:name|message)>\s*"
    r"(?:<command-(?:name|message)>[^<]*</command-(?:name|message)>\s*)?"
    r"<command-args>(?P<typed>.*)</command-args>\s*",
    re.DOTALL,
)
"""A text that consists only of a slash command of Claude Code. The person typed the arguments (2.1.39,
2.1.330; seen 2026-11). If there is other text around these tags, a program wrote them."""

_IDE: Final = ("# Context from my IDE setup:", "# Files mentioned by the user:")
_IDE_REQUEST: Final = LazyPattern(r"^## My request(?: for Codex)?:[ \t]*\n?", re.MULTILINE)
"""The heading before the words that the person typed, in messages from Codex's editor extension and app.
Before the last such heading, these programs write what the editor shows, or names and paths of files (a
pasted text has its first words as its name). The app writes `## My request:` since 2026-08 (public
transcripts, seen 2026-11)."""

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
"""Values of `meta.kind` and `meta.type` that mark a message of role `user` as written by a program."""


class Span(Struct, frozen=True, array_like=True, gc=False):
    """A stretch of a text that has one author, by position."""

    author: Author
    start: int
    """Where the stretch begins (inclusive), in code points of the text."""
    end: int
    """Where the stretch ends (exclusive), in code points of the text."""
    pasted: bool = False
    """Whether the stretch is fenced code or a quotation, which a person inserted. Such a stretch makes the
    message a request, but does not count as the person's own words."""


class Stretch(Struct, frozen=True, array_like=True, gc=False):
    """A piece of a message's text, and who wrote it."""

    author: Author
    text: str


def author_of(message: Message, block: Text | Document | None = None) -> Author:
    """Return the author of `message`, or of its block `block`, from the role and `meta`.

    The result is `user` only if the role is `user` and `meta` does not say that a program or a summariser
    wrote the text. A text block that continues a tool result which an earlier block announced has the author
    `tool` (`_under_frames`). O(1), plus the cost of `_under_frames` for a user's text block without
    `meta.author`.
    """
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


_last_frames: list[tuple[tuple[Block, ...], frozenset[int]]] = []


def _under_frames(content: tuple[Block, ...]) -> frozenset[int]:
    """Return the ids (`id()`) of the text blocks that continue a tool result which an earlier block announced
    (`[read_file for 'x'] Result:`).

    After the announcement, every text block continues the result, except a `<feedback>` block directly after
    the first part of the result. The result of a tool in `ASKING_TOOLS` ends before the first block that
    begins with a tag for typed words. O(characters). The last answer is cached, so a message whose blocks are
    examined one after another costs this only once.
    """
    if len(content) < 2:
        return frozenset()
    if _last_frames and (known := _last_frames[0])[0] is content:
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
            # What a person adds to a result comes directly after it. Later texts may be parts of the result.
            is_added = held == 1 and _TYPED_TAG.match(text) is not None and _FEEDBACK in text
            if not given and not is_added:
                under.add(id(block))
            held += 1
        found = None if tool else _open_frame(text)
        if found is not None:
            tool, held = found[0], int(found[1])
    _last_frames[:] = [(content, frozenset(under))]
    return frozenset(under)


def _open_frame(text: str) -> tuple[str, bool] | None:
    """Return (tool, whether the text contains a part of the result) if `text` announces a tool result that
    extends to the end of the text; otherwise None."""
    if _FRAME.search(text) is None:
        return None
    last = spans(text)[-1]
    head = _FRAME.match(text, last.start)
    return None if head is None or last.author != TOOL else (head[1], bool(text[head.end() :].strip()))


def known_author(name: str) -> Author:
    """Return `name` as an author; `unknown` if this version does not know the name."""
    return name if name in AUTHORS else UNKNOWN  # type: ignore[return-value]  # AUTHORS has only authors


def stretches(message: Message) -> Iterator[Stretch]:
    """Yield the texts of a message in order, split into stretches with one author each. Tool calls and images
    are left out. O(characters)."""
    for block in message.content:
        yield from stretches_of(message, block)


def stretches_of(message: Message, block: Block) -> Iterator[Stretch]:
    """Yield the texts of one block of `message`, split into stretches with one author each."""
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
    """Return whether a person asks for something in this message: whether it contains words that a person
    typed, code or a quotation that a person sent, or a slash command. Other text that programs write in the
    user's role is not a request. O(1) if the message begins with a person's words, otherwise
    O(characters)."""
    if message.role != "user":
        return False
    for block in message.content:
        if isinstance(block, Text) and author_of(message, block) == USER and _is_typed_block(message, block):
            return True
    return False


def _is_typed_block(message: Message, block: Text) -> bool:
    text = block.text
    begin = text.lstrip()
    if not begin:
        return False
    if (
        not _program_author(begin, is_named_user(message, block))
        and not begin.startswith(_IDE)
        and _OPENING.match(begin) is None
    ):
        return True
    if begin.startswith(_INVOKED):
        # A person invoked a slash command, so this is a request, although a program wrote the text.
        return True
    return any(
        (span.author == USER or span.pasted) and not text[span.start : span.end].isspace()
        for span in spans_of(message, block)
    )


def is_named_user(message: Message, block: Text) -> bool:
    """Return whether `meta.author` of the block, or else of its message, is `user`. O(1)."""
    given = block.meta.author if block.meta is not None else None
    if given is None and message.meta is not None:
        given = message.meta.author
    return given == USER


def begins_as_observation(text: str) -> bool:
    """Return whether a text begins with the label `Observation:`, as tool output does in agents without tool
    calls. O(1)."""
    return _OBSERVATION.match(text) is not None


def _program_author(text: str, is_named: bool) -> Author | None:
    if text[:1] in _BLANKS:
        text = text.lstrip(_BLANKS)
    if not is_named and begins_as_observation(text):
        return TOOL
    return next((author for pattern, author in _WHOLE if pattern.match(text) is not None), None)


def author_of_wrapped(text: str) -> Author | None:
    """Return the author of a text that is a single tagged block; None for any other text, and for a tag of
    `TYPED_TAGS`. The content of the block is not examined. O(length of the two tags)."""
    begin = _WRAPPED.match(text)
    if begin is None or (name := begin[1].lower()) in TYPED_TAGS:
        return None
    closing = text.rstrip()[-len(name) - _TAG_END_CHARS :].lower().translate(_NARROW).rpartition("</")[2]
    if not closing.endswith(">") or closing[:-1].split()[:1] != [name]:
        return None
    return _TAG_AUTHORS.get(name, UNKNOWN)


def spans_of(message: Message, block: Text) -> tuple[Span, ...]:
    """Return the stretches of a text block, in order and without gaps. `author_of` must have returned `user`
    for the block. O(characters)."""
    return spans(block.text, is_named=is_named_user(message, block))


def spans(text: str, *, is_named: bool = False) -> tuple[Span, ...]:
    """Return the stretches of `text`, which is from a message of role `user`, in order and without gaps.
    `is_named` means that `meta.author` names the user as the author.

    A tagged block ends at the last closing tag with its name, so that text inside the block cannot end it
    early. Without a closing tag, it ends at the end of the text, or at the end of its line if the tag may be
    ordinary text. If a block with a tag of `_TAG_AUTHORS` opens inside another block, the outer block ends no
    earlier than the last closing tag of the inner one, so that text inside the inner block cannot end the
    outer one. O(characters).
    """
    author = _program_author(text, is_named)
    if author is not None:
        return (Span(author, 0, len(text)),)
    command = _COMMAND.fullmatch(text)
    if command is not None:
        return tuple(_command_spans(text, *command.span("typed")))
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


def _command_spans(text: str, start: int, end: int) -> Iterator[Span]:
    yield Span(TOOL, 0, start)
    if start < end:
        for one in _Scan(text[start:end]).run():
            yield Span(one.author, one.start + start, one.end + start, one.pasted)
    yield Span(TOOL, end, len(text))


class _Scan:
    """One pass that splits a text with blocks (tagged, fenced, quoted, or begun by a fixed line) into
    stretches."""

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
        """Return (the block that begins at the match `found`, where to search next if there is no block). The
        block is None if the matched text is the person's own."""
        start = found.start()
        if (fence := found["fence"]) is not None:
            return Span(UNKNOWN, start, self._fence_end(fence, found["sign"], found.end()), pasted=True), 0
        if found["quote"] is not None:
            return Span(UNKNOWN, start, self._line_end(start), pasted=True), 0
        if (frame := found["frame"]) is not None:
            return self._frame(frame, start), 0
        if found["comment"] is not None or found["data"] is not None:
            return self._markup_span(found)
        return self._tagged_span(found)

    def _markup_span(self, found: re.Match[str]) -> tuple[Span | None, int]:
        """Return the block of a comment or a CDATA section, in the form of `_block`. A comment ends at the
        first `-->`, as in HTML; CDATA ends at the last `]]>`."""
        text, start = self._text, found.start()
        if found["comment"] is not None:
            end = -1 if self._no_comment_ends else text.find("-->", found.end())
            self._no_comment_ends = end < 0
        else:
            end = self._last_data
        if end >= found.end():
            return Span(UNKNOWN, start, end + 3), 0
        return (None, found.end()) if found["first"] is None else (Span(UNKNOWN, start, len(text)), 0)

    def _tagged_span(self, found: re.Match[str]) -> tuple[Span | None, int]:
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
        rest = _TAG_REST.match(text, found.end())
        has_attributes = rest is not None and bool(rest["attributes"].strip("/／ \t\r\n"))
        ends_line = rest is not None and rest["blank"] is not None
        closed = self._closings.get(name, -1)
        opens = (
            begins_line or looks_made or ((has_attributes or ends_line) and closed > self._line_end(start))
        )
        if closed > start and opens:
            return Span(author, start, self._end_with_opened(found.end(), self._tag_end(closed))), 0
        if rest is not None and rest["attributes"].rstrip().endswith(("/", "／")):
            return (Span(author, start, rest.end()), 0) if begins_line else (None, found.end())
        if name in _UNMISTAKABLE_TAGS or (is_known and has_attributes and (begins_line or ends_line)):
            return Span(author, start, len(text)), 0
        if not begins_line or (rest is not None and not ends_line and text[rest.end()].isspace()):
            return None, found.end()
        if looks_made and (ends_line or rest is not None):
            return Span(author, start, len(text)), 0
        return Span(author, start, self._line_end(start)), 0

    def _begins_typed(self) -> bool:
        """Return whether the text begins with a person's own words and has no closing tag of `TYPED_TAGS`."""
        if self._is_prompt is None:
            first = _OPENING.search(self._text)
            own = self._text if first is None else self._text[: first.start()]
            self._is_prompt = bool(own.strip(_BLANKS)) and TYPED_TAGS.isdisjoint(self._closings)
        return self._is_prompt

    def _end_with_opened(self, at: int, end: int) -> int:
        """Return the end of a block that extends at least to `end`. If a block with a tag of `_TAG_AUTHORS`
        opens in it at or after `at` and is closed after `end`, the outer block ends at that closing tag."""
        while (found := _KNOWN.search(self._text, at, end)) is not None:
            at = found.end()
            closed = self._closings.get(found[1].lower(), -1)
            if closed > end:
                end = self._tag_end(closed)
        return end

    def _tag_end(self, closed: int) -> int:
        """Return where a closing tag ends (exclusive) whose name ends at `closed`."""
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
        """Return where a fenced code block ends: after the line that closes it, or at the end of the text.
        The closing line contains only the fence's sign, at least as often as the opening line, and is
        indented at most three spaces more."""
        inside = len(opening) - len(fence) + 3
        close = re.compile(
            rf"^[ \t]{{0,{inside}}}{re.escape(fence)}{re.escape(fence[0])}*[ \t]*$", re.MULTILINE
        )
        found = close.search(self._text, self._line_end(at))
        return len(self._text) if found is None else self._line_end(found.start())
