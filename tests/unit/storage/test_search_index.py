"""The search index of all stored sessions: what it finds, and that it can be rebuilt from the journals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compactd.session.search_all import search_everywhere, searchable_text
from compactd.storage.journal_records import encode_record
from compactd.storage.paths import file_stem, index_file
from compactd.storage.search_index import CANDIDATES, FileIndex


def first(session_id: str) -> bytes:
    return b'{"type":"session","v":1,"id":"%b","at":1763750000.0}' % session_id.encode()


def message(entry_id: str, text: str, role: str = "user") -> bytes:
    head = f'{{"type":"message","id":"{entry_id}","at":1763750001.0,"tokens":[1,"chars4"],'
    return (head + f'"message":{{"role":"{role}","content":"{text}"}}}}').encode()


class Home:
    """A folder with journals, and their index."""

    def __init__(self, path: Path) -> None:
        self.sessions = path / "sessions"
        self.sessions.mkdir()
        self.index = FileIndex(self.sessions)

    def file(self, session_id: str) -> Path:
        return self.sessions / f"{file_stem(session_id)}.jsonl"

    def write(self, session_id: str, *texts: str) -> None:
        records = [first(session_id), *(message(f"e{n}", text) for n, text in enumerate(texts, 1))]
        self.file(session_id).write_bytes(
            b"".join(encode_record(seq, one) for seq, one in enumerate(records))
        )

    def add(self, session_id: str, seq: int, text: str) -> None:
        with self.file(session_id).open("ab") as journal:
            journal.write(encode_record(seq, message(f"e{seq}", text)))

    def found(self, query: str) -> list[tuple[str, str]]:
        hits = search_everywhere(self.index, query, 20).hits
        return sorted((hit.session_id, hit.entry_id) for hit in hits)

    def bytes_on_disk(self) -> bytes:
        folder = self.sessions.parent
        return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_each_message_that_holds_all_words_is_found_in_every_session(home: Home) -> None:
    home.write("a", "the stale cache", "a fresh loader")
    home.write("b", "cache the loader")

    assert home.found("cache") == [("a", "e1"), ("b", "e1")]
    assert home.found("LOADER cache") == [("b", "e1")]
    assert home.found("nothing") == []


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ("src/core/loader.py", True),
        ("core/loader.py:12", True),
        ("loader.py core", True),
        ("loader/core", False),
        ("max_tok", True),
        ("ax_tokens", False),
        ('"', False),
        ("loader AND", False),
        ("NEAR(loader, 3)", False),
        ("* ^ - : ( )", False),
    ],
)
def test_a_query_is_words_and_never_a_command(home: Home, query: str, is_found: bool) -> None:
    home.write("a", "in src/core/loader.py:12 the max_tokens are wrong")

    assert bool(home.found(query)) is is_found


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("请修复缓存加载器的错误", "缓存"),
        ("キャッシュを直してください", "キャッシュ"),
        ("أصلح المُخزّن المؤقت", "المؤقت"),
        ("Größe prüfen", "grÖße"),
    ],
)
def test_words_are_found_in_any_script(home: Home, text: str, query: str) -> None:
    home.write("a", text, "something else")

    hit = search_everywhere(home.index, query, 5).hits[0]

    assert (hit.entry_id, hit.snippet) == ("e1", text)


def test_what_is_appended_is_read_from_where_the_index_stopped(home: Home) -> None:
    home.write("a", "one", "two")
    home.write("b", "three")
    before = home.found("two")
    home.add("a", 3, "four")

    news = list(home.index.catch_up(lambda record: None))

    assert before == [("a", "e2")]
    assert len(news) == 1, "only the session with news is read"
    assert news[0] == len(encode_record(3, message("e3", "four"))), "and of it only the news"


def test_a_torn_tail_is_read_once_it_is_whole(home: Home) -> None:
    home.write("a", "one")
    whole = encode_record(2, message("e2", "two"))
    with home.file("a").open("ab") as journal:
        journal.write(whole[:20])
    torn = home.found("two")
    with home.file("a").open("ab") as journal:
        journal.write(whole[20:])

    assert (torn, home.found("two"), home.found("one")) == ([], [("a", "e2")], [("a", "e1")])


def test_a_session_that_was_replaced_is_read_anew(home: Home) -> None:
    home.write("a", "one", "two", "three")
    home.found("one")
    home.write("a", "four")

    assert [home.found(word) for word in ("one", "three", "four")] == [[], [], [("a", "e1")]]


def test_a_session_that_is_gone_is_not_found(home: Home) -> None:
    home.write("a", "one")
    home.write("b", "one")
    home.found("one")
    home.file("a").unlink()

    assert home.found("one") == [("b", "e1")]


@pytest.mark.parametrize("damage", ["text", "zeroes", "cut", "version"])
def test_an_index_that_is_damaged_is_made_anew(home: Home, damage: str) -> None:
    home.write("a", *(f"word{number} of many" for number in range(200)))
    home.found("many")
    path = index_file(home.sessions)
    data = path.read_bytes()
    broken = {
        "text": b"this is no database",
        "zeroes": bytes(len(data)),
        "cut": data[:1000],
        "version": data[:60] + b"\x00\x00\x00\x63" + data[64:],
    }
    for wal in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        wal.unlink(missing_ok=True)
    path.write_bytes(broken[damage])

    assert home.found("word199") == [("a", "e200")]


def test_what_is_forgotten_leaves_the_disk(home: Home) -> None:
    home.write("a", "the password is swordfish")
    home.write("b", "another one")
    assert home.found("swordfish")

    home.index.forget("a")

    assert b"swordfish" not in home.bytes_on_disk()
    assert home.found("another") == [("b", "e1")]


def test_the_index_is_private(home: Home) -> None:
    home.write("a", "one")
    home.found("one")

    modes = {path.stat().st_mode & 0o777 for path in home.sessions.parent.glob("index.sqlite3*")}

    assert modes == {0o600}


def test_two_that_catch_up_at_once_index_each_message_once(home: Home) -> None:
    home.write("a", "one")
    home.write("b", "one")
    other = FileIndex(home.sessions)
    mine, theirs = home.index.catch_up(searchable_text), other.catch_up(searchable_text)
    steps = [next(mine), next(theirs), *mine, *theirs]

    assert len(steps) >= 2
    assert home.found("one") == [("a", "e1"), ("b", "e1")]


def test_a_search_out_of_time_says_so_and_the_next_one_goes_on(home: Home) -> None:
    for number in range(5):
        home.write(f"s{number}", "one")

    early = search_everywhere(home.index, "one", 20, patience_s=0)
    late = search_everywhere(home.index, "one", 20)

    assert (early.complete, len(early.hits)) == (False, 1)
    assert (late.complete, len(late.hits)) == (True, 5)


def test_of_a_word_that_is_everywhere_the_newest_are_ranked_and_a_rare_one_is_found(
    home: Home,
) -> None:
    home.write("a", "the needle of the loader", *("the loader" for _ in range(CANDIDATES + 5)))

    everywhere = search_everywhere(home.index, "loader", 20).hits
    rare = search_everywhere(home.index, "needle", 20).hits

    assert len(everywhere) == 20
    assert min(int(hit.entry_id[1:]) for hit in everywhere) > 5
    assert [hit.entry_id for hit in rare] == ["e1"]


def test_an_older_session_is_indexed_before_a_newer_one(home: Home) -> None:
    """Newer sessions must rank first if there are too many to rank all."""
    home.write("a newer", *("the loader" for _ in range(CANDIDATES)))
    home.write("b older", "the loader")
    os.utime(home.file("b older"), (1, 1))

    assert {hit.session_id for hit in search_everywhere(home.index, "loader", CANDIDATES).hits} == {"a newer"}
