"""What a failed request's text holds: its innermost messages, machine codes and numbers, freed from
wrappers.

One forgiving scanner reads every notation an error arrives in: JSON, JSON inside strings, Python and
Ruby and Elixir literals, objects as Node prints them, server-sent events, byte strings, cut-off bodies.
What a body echoes of the request (`input`, `arguments`, `failed_generation`, …) is never read as its
message.
"""

from __future__ import annotations

import re

from msgspec import Struct

from compactd.core.overflow.lists import listed

HEAD = 8_000
"""Characters read from the beginning of a text. Errors are short; what follows is an echo."""
TAIL = 3_000
"""Characters read from its end, where a log or an echo leaves the message."""
FIELDS = 400
"""Most fields read from one text."""
NESTING = 6
"""Notations inside each other's strings that are opened: a gateway's gateway quotes twice (OpenRouter's
`metadata.raw`, seen 2026-11), nobody six times."""

ECHO = listed(
    "input inputs inputvalue failedgeneration arguments args kwargs request requestbody"
    " requestbodyvalues messages prompt content contents toolcalls tooluse toolresult tooloutput"
    " parameters url docurl helpurl links help flaggedinput stdout stderr output snippet excerpt choices"
    " candidates command cmd query value values received got actual given offending sample payload echo"
    " original originalrequest sent submitted attempted lastmessage preview context quote transcript"
    " history log logs text source diff patch stack trace traceback headers responseheaders ctx example"
    " examples newstring oldstring filepath"
)
"""Keys whose values are the caller's own words, or a tool's, or addresses. Letters only, lower case."""
WRAPPED_ECHO = listed("content text output")
"""Echo keys a relay also wraps a provider's answer in: opened only where the value is an error object."""

MESSAGE = listed(
    "message msg error errors detail details reason errormessage errormsg description err cause"
    " errordescription exception fault failure info raw body response data title statusmessage"
    " localizedmessage reasons msgs warning responsebody providererror upstreammessage upstreamerror"
    " userfacingmessage errmsg nonfielderrors metadata hint last lasterror innererror result"
)
CODE = listed(
    "code type errortype status errorcode errcode name kind slug stopreason finishreason"
    " incompletedetails reason xamznerrortype providererrorcode awserrorcode errorname subtype category"
    " nativefinishreason blockreason"
)
PLACED = listed("loc param field path parameter")
"""Keys whose values say which field of the request was refused."""
STATUS = listed("status statuscode httpstatus httpstatuscode httpcode rawstatuscode code errorcode")
LOGGED = listed(
    "level levelname loglevel severity logger lineno funcname pid threadname hostname pod service"
)
"""Keys of a structured log record: a line of some service's log, not a provider's answer."""
LEVELS = listed("level levelname loglevel severity lvl")
FAILING = listed("error fatal critical err")
"""Levels of a record of one failure, whose `error` is what was caught."""
STAMPS = listed("ts time timestamp asctime datetime date msg t logger traceid spanid")
REFUSING = listed(
    "error errors err message msg detail details errormessage errormsg errorcode errmsg fault exception"
    " failure errordescription statusmessage nonfielderrors lasterror innererror reason"
)
"""Keys of which an error's body has one."""
ARTICLE = listed(
    "htmlurl number labels snippet excerpt commits sha repository author createdat comments file line"
    " column ruleid hits total"
)
"""Keys of an issue, a search result or a commit: what they say is about an error."""
TOOLED = listed("toolresult toolcallid tooluseid exitcode returncode iserror stdout filepath")
"""Keys of a tool's result."""

ANSWER = r"""\{\s*\\?["']?error\\?["']?\s*[:=]"""
"""How a provider's own body begins; a request has no such field."""
ASKING = ("request", "request body", "payload", "arguments", "tool output", "tool result", "with input")
"""Prose before a bracket that opens an echo: what was sent."""

TOKEN = re.compile(
    r"""(?P<open>[{\[])|(?P<close>[}\]])
    |(?P<mark>=>|[:=,])
    |(?P<string>b?"(?:[^"\\]+|\\.|"(?=[A-Za-z0-9]))*"?|b?(?<![A-Za-z0-9])'(?:[^'\\]+|\\.|'(?=[A-Za-z0-9]))*'?)
    |(?P<bare>[^\s{}\[\]"':=,][^\s{}\[\]":=,]*|['])""",
    re.VERBOSE | re.DOTALL,
)
OPENING = re.compile(r"""[%#]?\{|\[(?=\s*[{"'])""")
CALL = r"(?<=[A-Za-z])\((?=[a-z_]{3,20}=[\"'{\[])"
"""Where the arguments of an exception's printed form begin: `APIError(message=…, code=…)`."""
CUT = re.compile(r"""\s{0,9}(?:'[^'\n]{8,600}'|"[^"\n]{8,600}"),\s?(?:'\w{2,30}'|"\w{2,30}"):""")
"""A notation whose beginning was lost: its first value, then another key."""
ERRED = re.compile(r"""\s{0,9}\\{0,9}["']description\\{0,9}["']\s?:""")
"""What an exception was raised with, as Dify's plugins print it: `"args": {"description": …}`."""
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
EVENT = r"(?m)^[ \t]*(?:event|id|retry):[^\n]*\n?|^[ \t]*data:[ \t]?"
COLOURS = r"(?:\x1b|\\x1b|\\u001b)\[[0-9;]{0,12}m"
DOMAIN = r"Error Domain=\S{1,80} Code=-?\d{1,9} \"((?:[^\"\\]|\\.){4,900})\"(?: UserInfo=\{[^{}]{0,900}\}?)?"
"""How Apple's frameworks print an error."""
RAISED_WITH = r"(['\"]),\s?[45]\d\d\)"
"""The end of an exception's arguments: a message and its status."""
CALLED = (
    r"(?<!raise )(?<!throw )(?<!new )\b(\w{1,60}(?:Error|Exception))"
    r"""\((["'])((?:(?!\2\s?[,)]).){8,900})\2\)"""
)
"""An exception's printed form with nothing but its message."""
LONE = re.compile(r"\[\s{0,4}(['\"])((?:(?!\1\s?[,\]]).){8,2000})\1\s{0,4}\]", re.DOTALL)
"""A list of one message."""
TAG = (
    r"<\?[^<>]{0,100}\?>|<(?:script|style)\b[^<]*</(?:script|style)>|</?[a-zA-Z][^<>]{0,300}>"
    r"|<!(?:--|DOCTYPE)[^<>]{0,300}>"
)
LETTERS = re.compile(r"[^a-z]+")
PLAIN = {"n": "\n", "t": " ", "r": " ", "b": " ", "f": " "}


class Field(Struct, frozen=True):
    """A scalar of the body."""

    key: str
    """Letters only, lower case. Empty where the value stands alone."""
    value: str
    depth: int
    """Containers and strings around it."""
    quoted: bool


class Unwrapped(Struct, frozen=True, kw_only=True):
    """A text, taken apart."""

    messages: tuple[str, ...]
    """For people; the innermost first."""
    codes: tuple[str, ...]
    """For programs; the innermost first. Stop reasons too."""
    figures: tuple[tuple[str, int], ...]
    """Named whole numbers, as the body spells their names."""
    prose: str
    """What stands outside of every notation: the whole text where there is none."""
    statuses: tuple[int, ...]
    is_record: bool
    """The body is a record of a log, an issue, a search result or a tool's result."""


def unwrap(text: str) -> Unwrapped:
    """`text` taken apart. Never raises. Cost: O(min(len, HEAD + TAIL))."""
    pieces = [text]
    if len(text) > HEAD + TAIL:
        pieces = [text[:HEAD], resumed(text[-TAIL:], structured="{" in text[:HEAD])]
    scan = Scan(streamed="data:" in pieces[0])
    return scan.result("\n".join(scan.read(plain(piece), 0) for piece in pieces))


def plain(text: str) -> str:
    """`text` without the signs of streams, tags and calls."""
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


def resumed(tail: str, *, structured: bool) -> str:
    """The end of a long text; of a notation, from behind the string that the cut fell into."""
    if not structured:
        return tail
    end = re.search(r"""(?<!\\)["'](?=\s*[,}\]])""", tail)
    return tail if end is None else "{" + tail[end.end() :].lstrip(" \n,}]")


class Scan:
    """Fields collected from a text and from the notations within its strings."""

    def __init__(self, *, streamed: bool) -> None:
        self.streamed = streamed
        self.fields: list[Field] = []
        self.names: list[tuple[str, str, int]] = []
        self.negative = ""
        self.keys: set[str] = set()
        self.blocks = 0

    def read(self, text: str, depth: int) -> str:
        """Collects `text`'s fields; returns what stands outside of its notations."""
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
                text = ESCAPE.sub(unescaped, inner) if "\\" in inner else inner
                depth += 1
        prose: list[str] = []
        at = 0
        while len(self.fields) < FIELDS:
            opening = OPENING.search(text, at)
            if opening is None:
                break
            prose.append(text[at : opening.start()])
            self.blocks += depth == 0
            at = self.block(text, opening.end() - 1, depth + 1, echo=asks(text, opening.start()))
        prose.append(text[at:])
        return "\n".join(piece for piece in prose if piece.strip())

    def block(self, text: str, start: int, depth: int, *, echo: bool) -> int:
        """Collects one container and all within; returns the index behind it. No recursion: any depth."""
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
        if silent:
            return
        if "\\" in value:
            value = ESCAPE.sub(unescaped, value)
            if "\\u" in value:
                value = ESCAPE.sub(unescaped, value)
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
                or (answers(value) and bool(self.keys.intersection(STATUS)))
            )
        )
        if key in ECHO and not wraps:
            if value[:1] == "-" and value[1:].isdecimal() and not quoted:
                self.negative = self.negative or value
            return
        if holds:
            outside = self.read(re.sub(EVENT, "", value), depth + 4)
            if outside.strip():
                self.fields.append(Field(key, outside, depth, quoted))
            return
        self.names.append((name or key, value, depth)) if not quoted else None
        self.fields.append(Field(key, value, depth, quoted))

    def result(self, prose: str) -> Unwrapped:
        messages = [(f.depth, f.value) for f in self.fields if f.key in MESSAGE and says(f.value)]
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


def asks(text: str, at: int) -> bool:
    """Whether the words before an opening bracket say that the request follows."""
    before = text[max(0, at - 40) : at].rstrip(" \n:=-").lower()
    if not before.endswith(ASKING) or before.endswith("bad request"):
        return False
    return re.match(ANSWER, text[at : at + 40]) is None


def answers(value: str) -> bool:
    """Whether a value begins as an error's body does."""
    return re.match(r"""\s{0,9}\{\s{0,9}"(?:error|message|detail|code)"\s?:""", value) is not None


def says(value: str) -> bool:
    """Whether a value is for people: more than one word, or one in a script without spaces."""
    value = value.strip()
    return " " in value or (not value.isascii()) or (len(value) > 3 and not is_code(value))


def is_code(value: str) -> bool:
    """Whether a value is a name for programs: one word, neither a number nor an address."""
    return 3 < len(value) < 80 and " " not in value.strip() and not value.isdecimal() and "/" not in value


def number(value: str) -> int:
    """The whole number, or 0 of one with more digits than any window has."""
    return int(value) if len(value) < 16 and value.isascii() and value.isdecimal() else 0


def unescaped(found: re.Match[str]) -> str:
    code = found.group(1)
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return PLAIN.get(code, code)
