"""`compactd inspect --svg` and `--html`: self-contained pictures, safe for any session content."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.cli.framework.page import make_encodable, one_line
from compactd.cli.inspect.markup import escape
from tests.support.command_line import ANSI, TERMINAL, run, run_each
from tests.support.session_files import answered, asked, claude_code, filler, got, reported, text, used

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> \u2028 ]]> &amp; \x1b[31m \u202e\" 'x"
)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


def hostile_session(path):
    """Two turns, a compaction and a third; every name, path and text tries to be markup."""
    records = [
        asked(HOSTILE),
        answered(1, used("t1", HOSTILE, file_path=f"/home/{HOSTILE}"), usage=reported(30_000)),
        got("t1", HOSTILE + filler(500), is_error=True),
        answered(2, text(HOSTILE), usage=reported(90_000, cached=30_000)),
        asked("This session is being continued. " + HOSTILE, isCompactSummary=True),
        asked("Go on. " + HOSTILE),
        answered(3, used("t2", "Bash", command=HOSTILE), usage=reported(20_000)),
        got("t2", filler(2_000)),
        answered(4, text(HOSTILE), usage=reported(50_000)),
    ]
    claude_code(path, records)
    title = json.dumps({"type": "custom-title", "customTitle": HOSTILE, "sessionId": "x"})
    path.write_text(path.read_text() + title + "\n")
    return path


@pytest.fixture(scope="module")
def drawn(home):
    file = hostile_session(home / "hostile.jsonl")
    seen, data = run_each(
        home,
        ("inspect", file, "--svg", home / "a.svg", "--html", home / "a.html"),
        ("inspect", file, "--json", "--html", home / "b.html"),
    )
    return seen, data, (home / "a.svg").read_text("utf-8"), (home / "a.html").read_text("utf-8")


class Page(HTMLParser):
    """Elements, attributes and texts, as a browser takes them."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.inside: dict[str, str] = {}
        self._name = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.elements.append((tag, dict(attrs)))
        self._name = f"{tag}#{dict(attrs).get('id', '')}"

    def handle_endtag(self, tag) -> None:
        self._name = ""

    def handle_data(self, data) -> None:
        self.inside[self._name] = self.inside.get(self._name, "") + data


def parsed(page) -> Page:
    parser = Page()
    parser.feed(page)
    parser.close()
    return parser


def test_the_files_are_named_and_what_is_written_is_what_was_asked_for(home, drawn) -> None:
    seen, data, _, _ = drawn

    assert (seen.code, seen.err, data.code) == (0, "", 0)
    assert seen.lines[-2:] == [
        f"wrote {home}/a.svg: a picture",
        f"wrote {home}/a.html: a page, for any browser",
    ]
    assert data.json["output"] == {"html": f"{home}/b.html"}
    assert len(data.json["largest"]) <= 10


def test_the_svg_is_xml_with_a_bar_of_a_hundred_cells_and_no_element_of_the_sessions(drawn) -> None:
    root = ElementTree.fromstring(drawn[2])

    names = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert names <= {"svg", "title", "desc", "style", "rect", "text", "line", "path", "polyline"}
    cells = [one for one in root.iter(f"{SVG}rect") if one.get("height") == "24"]
    assert len(cells) == 100
    assert sum(one.get("class") != "free" for one in cells) == 25
    texts = ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]
    assert any(one.startswith("</script><script>alert(1)</script>") for one in texts)
    assert "compactions at turn 1" in " ".join(texts)
    assert any(one.startswith("a compaction now would free") for one in texts)
    assert "prefers-color-scheme:dark" in drawn[2]
    assert not re.search(r"(?:href|src|url\()", re.sub(r">[^<]*<", "><", drawn[2]))


def test_the_page_fetches_nothing_and_runs_no_script_but_its_own(drawn) -> None:
    page = parsed(drawn[3])

    policy = next(a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for name in ("style", "script"):
        digest = b64encode(sha256(page.inside[f"{name}#"].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    scripts = [about for tag, about in page.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "facts"}, {}]
    assert not any(tag in ("img", "link", "iframe", "object", "base") for tag, _ in page.elements)
    assert not any(
        name in ("style", "src") or name[:2] == "on" for _, about in page.elements for name in about
    )


def test_hostile_texts_are_texts_in_the_page_and_in_its_data(drawn) -> None:
    page = parsed(drawn[3])

    raw = page.inside["script#facts"]
    assert not set("<>&\u2028\u2029") & set(raw)
    facts = json.loads(raw)
    assert facts["title"].startswith("</script><script>alert(1)</script>")
    assert page.inside["h1#"] == facts["title"]
    told = facts["title"] + "".join(entry["what"] for entry in facts["entries"])
    assert not set("\x1b\u202e") & set(told)


def test_the_pages_data_are_those_of_the_command(drawn) -> None:
    _, data, _, page = drawn
    facts = json.loads(parsed(page).inside["script#facts"])

    assert (facts["used"], facts["window"]) == (data.json["used"]["tokens"], 200_000)
    assert sum(part["tokens"] for part in facts["parts"]) == pytest.approx(facts["used"], abs=8)
    assert [point["tokens"] for point in facts["points"]] == [30_010, 90_010, 20_010, 50_010]
    assert [point["since"] for point in facts["points"]] == [0, 0, 1, 1]
    assert facts["compactions"] == [1]
    assert facts["spent"][-1]["dollars"] == pytest.approx(data.json["cost"]["dollars"])
    shown = sum(entry["tokens"] for entry in facts["entries"]) + facts["rest_tokens"]
    assert shown > 0
    assert facts["entries"][0]["colour"] == "results"


def test_a_picture_never_overwrites_the_session_nor_two_of_them_each_other(home, drawn) -> None:
    file = home / "hostile.jsonl"
    before = file.read_bytes()

    itself, same, nowhere = run_each(
        home,
        ("inspect", file, "--svg", file),
        ("inspect", file, "--svg", "x", "--html", "x"),
        ("inspect", file, "--html", home / "none" / "x.html"),
    )

    assert (itself.code, same.code, nowhere.code) == (2, 2, 2)
    assert "it is the session file itself" in itself.err
    assert same.err == "--svg and --html name the same file.\n"
    assert file.read_bytes() == before


def test_a_wide_terminal_gets_a_cell_for_each_percent_and_a_narrow_one_fewer(home, drawn) -> None:
    file = home / "hostile.jsonl"

    wide = run(home, "inspect", file, env={**TERMINAL, "COLUMNS": "120"})
    narrow = run(home, "inspect", file, env={**TERMINAL, "COLUMNS": "20"})

    first, second, *rest = [ANSI.sub("", line) for line in wide.lines]
    assert re.fullmatch(r"▐[█░=@+·│]{100}▌  25 %", first)
    assert first.index("│") == second.index("↑") == 81
    assert max(map(len, rest)) <= 100
    assert max(len(ANSI.sub("", line)) for line in narrow.lines[:5]) <= 20


@given(text=st.text(st.characters(exclude_categories=()), max_size=60))
@settings(deadline=None)
def test_any_text_is_one_text_in_xml_and_html(text) -> None:
    safe = escape(text)

    root = ElementTree.fromstring(f'<a b="{safe}">{safe}</a>')
    page = parsed(f'<p title="{safe}">{safe}</p>')

    assert (root.text or "", root.get("b")) == (page.inside.get("p#", ""), page.elements[0][1]["title"])
    assert len(page.elements) == len(list(root.iter())) == 1
    seen = "".join(c for c in make_encodable(one_line(text)) if c not in "\ufffe\uffff")
    assert (root.text or "") == seen
