"""Take apart the text of a failed request: find its messages, machine codes and numbers, the innermost first.

One tolerant scanner reads every notation that errors come in: JSON, JSON inside strings, literals of Python,
Ruby and Elixir, objects as Node prints them, server-sent events, byte strings, truncated bodies. A field that
repeats parts of the request (an echo: `input`, `arguments`, `failed_generation`, …) is never taken for the
error's message.
"""

from __future__ import annotations

import re

from msgspec import Struct

from compactd.core.overflow.vocabulary import word_set

HEAD_CHARS = 8_000
"""How many characters are read from the beginning of a text. Errors are short; what follows is an echo."""
TAIL_CHARS = 3_000
"""How many characters are read from the end, where a log or an echo puts the message."""
FIELDS = 400
"""The maximum number of fields that are read from one text."""
NESTING = 6
"""How many levels of notation inside strings are opened. OpenRouter's `metadata.raw` has two (seen
2026-11); more than six do not occur."""

ECHO = word_set(
    "input inputs inputvalue failedgeneration arguments args kwargs request requestbody"
    " requestbodyvalues messages prompt content contents toolcalls tooluse toolresult tooloutput"
    " parameters url docurl helpurl links help flaggedinput stdout stderr output snippet excerpt choices"
    " candidates command cmd query value values received got actual given offending sample payload echo"
    " original originalrequest sent submitted attempted lastmessage preview context quote transcript"
    " history log logs text source diff patch stack trace traceback headers responseheaders ctx example"
    " examples newstring oldstring filepath"
)
"""Keys whose values repeat the request or a tool's output, or are addresses. Letters only, lower case."""
WRAPPED_ECHO = word_set("content text output")
"""Those keys of `ECHO` in which a relay may also wrap a provider's error. They are opened only if the
value is an error object."""

MESSAGE = word_set(
    "message msg error errors detail details reason errormessage errormsg description err cause"
    " errordescription exception fault failure info raw body response data title statusmessage"
    " localizedmessage reasons msgs warning responsebody providererror upstreammessage upstreamerror"
    " userfacingmessage errmsg nonfielderrors metadata hint last lasterror innererror result"
)
"""Keys whose values may be messages for people. Letters only, lower case."""
CODE = word_set(
    "code type errortype status errorcode errcode name kind slug stopreason finishreason"
    " incompletedetails reason xamznerrortype providererrorcode awserrorcode errorname subtype category"
    " nativefinishreason blockreason"
)
"""Keys whose values may be machine codes. Letters only, lower case."""
PLACED = word_set("loc param field path parameter")
"""Keys whose values say which field of the request was refused."""
STATUS = word_set("status statuscode httpstatus httpstatuscode httpcode rawstatuscode code errorcode")
"""Keys whose values may be HTTP statuses. Letters only, lower case."""
LOGGED = word_set(
    "level levelname loglevel severity logger lineno funcname pid threadname hostname pod service"
)
"""Keys of a structured log record: a line of a service's log, not a provider's answer."""
LEVELS = word_set("level levelname loglevel severity lvl")
"""Keys whose values are the level of a log record."""
FAILING = word_set("error fatal critical err")
"""Levels of a log record about a failure. The `error` of such a record is the error that the program
caught."""
STAMPS = word_set("ts time timestamp asctime datetime date msg t logger traceid spanid")
"""Keys of which a structured log record has at least one: its time, message, logger or trace."""
REFUSING = word_set(
    "error errors err message msg detail details errormessage errormsg errorcode errmsg fault exception"
    " failure errordescription statusmessage nonfielderrors lasterror innererror reason"
)
"""Keys of which the body of an error has at least one."""
ARTICLE = word_set(
    "htmlurl number labels snippet excerpt commits sha repository author createdat comments file line"
    " column ruleid hits total"
)
"""Keys of an issue, a search result or a commit. Such an object may be about an error, but is not one."""
TOOLED = word_set("toolresult toolcallid tooluseid exitcode returncode iserror stdout filepath")
"""Keys of a tool's result."""

ANSWER = r"""\{\s*\\?["']?error\\?["']?\s*[:=]"""
"""Matches the beginning of a provider's error body. No request has such a field."""
ASKING = ("request", "request body", "payload", "arguments", "tool output", "tool result", "with input")
"""Words before an opening bracket which say that the request follows."""

TOKEN = re.compile(
    r"""(?P<open>[{\[])|(?P<close>[}\]])
    |(?P<mark>=>|[:=,])
    |(?P<string>b?"(?:[^"\\]+|\\.|"(?=[A-Za-z0-9]))*"?|b?(?<![A-Za-z0-9])'(?:[^'\\]+|\\.|'(?=[A-Za-z0-9]))*'?)
    |(?P<bare>[^\s{}\[\]"':=,][^\s{}\[\]":=,]*|['])""",
    re.VERBOSE | re.DOTALL,
)
"""Matches one token of any notation: a bracket, a separator, a quoted string or a bare word."""
OPENING = re.compile(r"""[%#]?\{|\[(?=\s*[{"'])""")
"""Matches the bracket with which a notation begins."""
CALL = r"(?<=[A-Za-z])\((?=[a-z_]{3,20}=[\"'{\[])"
"""Matches the bracket that opens the arguments of a printed exception: `APIError(message=…, code=…)`."""
CUT = re.compile(r"""\s{0,9}(?:'[^'\n]{8,600}'|"[^"\n]{8,600}"),\s?(?:'\w{2,30}'|"\w{2,30}"):""")
"""Matches a notation whose beginning was lost: a value without a key, then another key."""
ERRED = re.compile(r"""\s{0,9}\\{0,9}["']description\\{0,9}["']\s?:""")
"""Matches the arguments of an exception that is an error object, as Dify's plugins print it: `"args":
{"description": …}`."""
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
"""Matches an escape sequence in a string."""
EVENT = r"(?m)^[ \t]*(?:event|id|retry):[^\n]*\n?|^[ \t]*data:[ \t]?"
"""Matches the field names of server-sent events."""
COLOURS = r"(?:\x1b|\\x1b|\\u001b)\[[0-9;]{0,12}m"
"""Matches a terminal's colour codes."""
DOMAIN = r"Error Domain=\S{1,80} Code=-?\d{1,9} \"((?:[^\"\\]|\\.){4,900})\"(?: UserInfo=\{[^{}]{0,900}\}?)?"
"""Matches an error as Apple's frameworks print it."""
RAISED_WITH = r"(['\"]),\s?[45]\d\d\)"
"""Matches the end of the arguments of an exception: the message's closing quotation mark and a status."""
CALLED = (
    r"(?<!raise )(?<!throw )(?<!new )\b(\w{1,60}(?:Error|Exception))"
    r"""\((["'])((?:(?!\2\s?[,)]).){8,900})\2\)"""
)
"""Matches a printed exception that contains only its message."""
LONE = re.compile(r"\[\s{0,4}(['\"])((?:(?!\1\s?[,\]]).){8,2000})\1\s{0,4}\]", re.DOTALL)
"""Matches a list that contains one message and nothing else."""
TAG = (
    r"<\?[^<>]{0,100}\?>|<(?:script|style)\b[^<]*</(?:script|style)>|</?[a-zA-Z][^<>]{0,300}>"
    r"|<!(?:--|DOCTYPE)[^<>]{0,300}>"
)
"""Matches a tag of HTML or XML."""
LETTERS = re.compile(r"[^a-z]+")
"""Matches what is removed from a key before it is compared: everything but lower-case letters."""
PLAIN = {"n": "\n", "t": " ", "r": " ", "b": " ", "f": " "}
"""The character for each one-letter escape. Tabs and the like become spaces."""


class BodyField(Struct, frozen=True):
    """One value of the body that is not a container."""

    key: str
    """The key, letters only, in lower case; empty if the value has no key."""
    value: str
    depth: int
    """How many containers and strings contain the value."""
    quoted: bool
    """Whether the value was a string in quotation marks."""


class Unwrapped(Struct, frozen=True, kw_only=True):
    """The parts of an error's text."""

    messages: tuple[str, ...]
    """Messages for people, the innermost first."""
    codes: tuple[str, ...]
    """Machine codes, the innermost first. Stop reasons are included."""
    figures: tuple[tuple[str, int], ...]
    """(name, value) of each integer that has a name, with the name as the body spells it."""
    prose: str
    """The text outside of any notation. It is the whole text if there is no notation."""
    statuses: tuple[int, ...]
    """The HTTP error statuses in the body's fields, in order."""
    is_record: bool
    """Whether the body is a log record, an issue, a search result or a tool's result."""


def unwrap(text: str) -> Unwrapped:
    """Take `text` apart into messages, codes, numbers and prose. Never raises. O(min(length, `HEAD_CHARS` +
    `TAIL_CHARS`))."""
    pieces = [text]
    if len(text) > HEAD_CHARS + TAIL_CHARS:
        pieces = [text[:HEAD_CHARS], resume_cut(text[-TAIL_CHARS:], structured="{" in text[:HEAD_CHARS])]
    scan = FieldScan(streamed="data:" in pieces[0])
    return scan.result("\n".join(scan.read(without_markup(piece), 0) for piece in pieces))


def without_markup(text: str) -> str:
    """Return `text` with wrappers around notations removed or simplified: colour codes, event names, tags,
    and the call around the arguments of a printed exception."""
    if "\x1b" in text or "\\x1b[" in text or "\\u001b[" in text:
        text = re.sub(COLOURS, "", text)
    if "{“" in text:
        text = text.replace("“", '"').replace("”", '"')
    if "Domain=" in text:
        text = re.sub(DOMAIN, r"Error: \1", text)
    if "')" in text or '")' in text or "0)" in text or "2)" in text:
        text = re.sub(RAISED_WITH, r"\1)", text)
    if 'Error("' in text or 'Exception("' in text or "Error('" in text:
        text = re.sub(CALLED, r"\1: \3", text)
    if "data:" in text:
        text = re.sub(EVENT, "", text)
    if '(message=\\"' in text:
        text = text.replace('\\"', '"')
    if "='" in text or '="' in text or "={" in text or "=[" in text:
        text = re.sub(CALL, "{", text)
    if CUT.match(text) is not None:
        text = '{"message": ' + text.lstrip()
    if "<" in text and ">" in text:
        text = re.sub(TAG, " . ", text)
        if "&" in text:
            text = text.replace("&quot;", '"').replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">")
    return text


def resume_cut(tail: str, *, structured: bool) -> str:
    """Return `tail`, the end of a long text, ready to be read. If the text is `structured`, `tail` probably
    begins inside a string: the rest of that string is dropped, and an opening bracket is put in its place."""
    if not structured:
        return tail
    end = re.search(r"""(?<!\\)["'](?=\s*[,}\]])""", tail)
    return tail if end is None else "{" + tail[end.end() :].lstrip(" \n,}]")


class FieldScan:
    """A collector of the fields of a text, and of those in the notations inside its strings."""

    def __init__(self, *, streamed: bool) -> None:
        self.streamed = streamed
        self.fields: list[BodyField] = []
        self.names: list[tuple[str, str, int]] = []
        self.negative = ""
        self.keys: set[str] = set()
        self.blocks = 0

    def read(self, text: str, depth: int) -> str:
        """Collect the fields of `text`, which is `depth` levels deep. Return the text outside of its
        notations."""
        left = text.strip()
        if left[:1] == "[" and (lone := LONE.fullmatch(left)) is not None:
            left = text = lone.group(2)
        if (
            depth < NESTING
            and len(left) > 3
            and left[0] in "b\"'"
            and left[-1] in "\"'"
            and left[1] != left[0]
        ):
            inner = left.lstrip("b")[1:-1]
            whole = '\\"' in inner and re.search(r'(?<!\\)"', inner) is None
            if left.startswith(('"{', "'{", "b'", 'b"')) or whole or OPENING.search(inner) is None:
                text = ESCAPE.sub(unescape, inner) if "\\" in inner else inner
                depth += 1
        prose: list[str] = []
        at = 0
        while len(self.fields) < FIELDS:
            opening = OPENING.search(text, at)
            if opening is None:
                break
            prose.append(text[at : opening.start()])
            self.blocks += depth == 0
            at = self.block(text, opening.end() - 1, depth + 1, echo=announces_request(text, opening.start()))
        prose.append(text[at:])
        return "\n".join(piece for piece in prose if piece.strip())

    def block(self, text: str, start: int, depth: int, *, echo: bool) -> int:
        """Collect the fields of the container that begins at `start`, and of everything in it. Return the
        index after the container. `echo` says that the container repeats the request: then its fields are
        skipped. The function does not recurse, so any nesting is safe."""
        stack: list[tuple[str, str, bool]] = []
        key, pending, quoted, silent = "", None, False, echo
        name = owed = ""
        for token in TOKEN.finditer(text, start):
            kind, word = token.lastgroup, token.group()
            if kind == "string":
                word = word.removeprefix("b")
                word = word[1:-1] if len(word) > 1 and word[-1] == word[0] else word[1:]
                pending, quoted = (word, True) if pending is None else (f"{pending} {word}", quoted)
            elif kind == "bare":
                if word == ")":
                    continue
                pending = word if pending is None else f"{pending} {word}"
            elif kind == "open":
                if pending is not None and key == "":
                    key = LETTERS.sub("", pending.lower())
                stack.append((word, key, silent))
                silent = silent or (
                    key in ECHO and not (key == "args" and ERRED.match(text, token.end()) is not None)
                )
                if word == "{":
                    key = ""
                pending, quoted = None, False
            elif word in (":", "=", "=>"):
                if stack and stack[-1][0] == "{" and not name and pending is not None:
                    name = pending
                    key = LETTERS.sub("", pending.lower())
                    if not silent:
                        self.keys.add(key)
                    pending, quoted = None, False
                elif pending is not None:
                    pending += word
                continue
            else:
                if pending is not None:
                    self.emit(name, key or owed, pending, depth + len(stack), quoted=quoted, silent=silent)
                owed = key if pending is None and name and not silent else ""
                pending, quoted = None, False
                if kind == "close" and stack:
                    _, key, silent = stack.pop()
                    if not stack:
                        return token.end()
                if stack and stack[-1][0] == "{":
                    key = ""
            if kind in ("open", "close") or word == ",":
                name = ""
                if kind != "open" and stack and stack[-1][0] == "[":
                    key = stack[-1][1]
            if len(self.fields) >= FIELDS:
                return len(text)
        if pending is not None:
            self.emit(name, key or owed, pending, depth + len(stack), quoted=quoted, silent=silent)
        return len(text)

    def emit(self, name: str, key: str, value: str, depth: int, *, quoted: bool, silent: bool) -> None:
        """Record one value under `key`; `name` is the key as the body spells it. If the value itself contains
        a notation, collect the fields of that notation instead. A `silent` value is part of an echo and is
        ignored."""
        if silent:
            return
        if "\\" in value:
            value = ESCAPE.sub(unescape, value)
            if "\\u" in value:
                value = ESCAPE.sub(unescape, value)
        holds = (
            quoted
            and depth < NESTING * 4
            and len(value) > 8
            and (OPENING.search(value) or value.startswith("data:"))
        )
        wraps = (
            holds
            and key in WRAPPED_ECHO
            and (
                value.lstrip().startswith('{"error"')
                or (is_error_body(value) and bool(self.keys.intersection(STATUS)))
            )
        )
        if key in ECHO and not wraps:
            if value[:1] == "-" and value[1:].isdecimal() and not quoted:
                self.negative = self.negative or value
            return
        if holds:
            outside = self.read(re.sub(EVENT, "", value), depth + 4)
            if outside.strip():
                self.fields.append(BodyField(key, outside, depth, quoted))
            return
        self.names.append((name or key, value, depth)) if not quoted else None
        self.fields.append(BodyField(key, value, depth, quoted))

    def result(self, prose: str) -> Unwrapped:
        """Return what was collected, the innermost first."""
        messages = [(f.depth, f.value) for f in self.fields if f.key in MESSAGE and is_for_people(f.value)]
        if self.negative:
            placed = " ".join(f.value for f in self.fields if f.key in PLACED)
            messages.append((NESTING * 9, f"{placed[:120]} must not be negative, got {self.negative}"))
        codes = [(f.depth, f.value) for f in self.fields if f.key in CODE and is_code(f.value)]
        codes += [(f.depth, f.value) for f in self.fields if f.key in MESSAGE and is_code(f.value)]
        messages.sort(key=lambda found: -found[0])
        codes.sort(key=lambda found: -found[0])
        statuses = tuple(
            int(f.value)
            for f in self.fields
            if f.key in STATUS and f.value.isdecimal() and 400 <= number(f.value) < 600
        )
        failed = self.blocks == 1 and any(f.key in LEVELS and f.value.lower() in FAILING for f in self.fields)
        is_record = (
            (bool(self.keys & LOGGED and self.keys & STAMPS) and not (failed and "error" in self.keys))
            or len(self.keys & ARTICLE) >= 2
            or bool(self.keys & TOOLED and not self.keys & {"error"})
            or (self.blocks > 2 and not self.streamed)
            or (bool(messages) and not self.keys & REFUSING)
        )
        return Unwrapped(
            messages=tuple(dict.fromkeys(value for _, value in messages)),
            codes=tuple(dict.fromkeys(value for _, value in codes)),
            figures=tuple(
                (name, number(value)) for name, value, _ in self.names if value.isdecimal() and name
            ),
            prose=prose,
            statuses=statuses,
            is_record=is_record,
        )


def announces_request(text: str, at: int) -> bool:
    """Return whether the words before the opening bracket at `at` say that the request follows, not an
    answer."""
    before = text[max(0, at - 40) : at].rstrip(" \n:=-").lower()
    if not before.endswith(ASKING) or before.endswith("bad request"):
        return False
    return re.match(ANSWER, text[at : at + 40]) is None


def is_error_body(value: str) -> bool:
    """Return whether a value begins like the body of an error."""
    return re.match(r"""\s{0,9}\{\s{0,9}"(?:error|message|detail|code)"\s?:""", value) is not None


def is_for_people(value: str) -> bool:
    """Return whether a value is text for people: several words, a script other than ASCII, or something
    that is not a machine code."""
    value = value.strip()
    return " " in value or (not value.isascii()) or (len(value) > 3 and not is_code(value))


def is_code(value: str) -> bool:
    """Return whether a value may be a machine code: one word that is neither a number nor an address."""
    return 3 < len(value) < 80 and " " not in value.strip() and not value.isdecimal() and "/" not in value


def number(value: str) -> int:
    """Return the integer in `value`; 0 if it is not decimal digits or has more than 15 of them."""
    return int(value) if len(value) < 16 and value.isascii() and value.isdecimal() else 0


def unescape(found: re.Match[str]) -> str:
    """Return the character for an escape sequence that `ESCAPE` matched."""
    code = found.group(1)
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return PLAIN.get(code, code)
