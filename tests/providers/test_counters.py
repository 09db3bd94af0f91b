"""Counting with OpenAI's own ranks, without network or environment."""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import tiktoken_ext.openai_public as public
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.script import estimate
from compactd.core.tokens import Chars4, Chars4Utf16, ScriptAware
from compactd.providers.counters import (
    SPECS,
    Bpe,
    EncodingError,
    count_with,
    counter_for,
    load,
    safe_slices,
    unpack,
)

STDLIB = Path(os.__file__).parent
O200K = Bpe("o200k_base")


# --- the ranks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SPECS))
def test_pattern_and_special_tokens_are_those_of_tiktoken(name: str, tmp_path: Path) -> None:
    # tiktoken's own constructor wants ranks: it is given a file of them where it looks first.
    written = "\n".join(f"{base64.b64encode(token).decode()} {rank}" for token, rank in unpack(name).items())
    url_hash = {
        "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
        "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    }
    (tmp_path / url_hash[name]).write_text(written + "\n")
    code = (
        "import json, sys, tiktoken_ext.openai_public as public\n"
        f"made = public.{name}()\n"
        "json.dump([made['pat_str'], made['special_tokens'], len(made['mergeable_ranks'])], sys.stdout)"
    )
    seen = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path), "HTTPS_PROXY": "http://127.0.0.1:9"},
        capture_output=True,
        check=True,
    )

    # That it loaded at all proves the ranks: tiktoken compares the file with OpenAI's hash.
    assert json.loads(seen.stdout) == [SPECS[name].pattern, SPECS[name].special_tokens, len(unpack(name))]
    assert name in public.ENCODING_CONSTRUCTORS


def test_known_texts_have_their_known_number_of_tokens() -> None:
    # tiktoken 0.14.0: encode_ordinary of the same texts with OpenAI's files.
    texts = (
        "",
        "hello world",
        "antidisestablishmentarianism",
        "お誕生日おめでとう",
        "<|endoftext|>",
        "\ud83d x",
    )

    assert [O200K.count(text) for text in texts] == [0, 2, 6, 8, 7, 2]
    assert [Bpe("cl100k_base").count(text) for text in texts] == [0, 2, 6, 9, 7, 2]


def test_the_ranks_are_loaded_without_network_and_without_environment(tmp_path: Path) -> None:
    code = "from compactd.providers.counters import Bpe; print(Bpe('o200k_base').count('hello world'))"

    seen = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path / "none"), "HTTPS_PROXY": "http://127.0.0.1:9"},
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )

    assert seen.stdout == b"2\n"
    assert list(tmp_path.iterdir()) == []


def test_importing_the_counters_loads_neither_tiktoken_nor_ranks() -> None:
    code = "import sys, compactd.providers.counters; print('tiktoken' in sys.modules, 'zlib' in sys.modules)"

    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert seen.stdout == b"False False\n"


def test_threads_that_ask_at_once_get_one_encoding() -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(id(load("o200k_base")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert len(set(found)) == 1


def test_a_damaged_rank_file_is_refused(tmp_path: Path) -> None:
    folder = Path(unpack.__code__.co_filename).parent.parent / "data" / "encodings"
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    whole = bytearray((tmp_path / "cl100k_base.z").read_bytes())
    whole[1000] ^= 1
    (tmp_path / "cl100k_base.z").write_bytes(whole)

    with pytest.raises(EncodingError):
        unpack("cl100k_base", tmp_path)
    assert len(unpack("o200k_base", tmp_path)) == 199998


# --- slices -----------------------------------------------------------------------------------------------


@given(st.text(alphabet=st.sampled_from(" \n\tab/)1é的😀"), max_size=300), st.integers(1, 40))
def test_slices_are_the_text_in_order_none_too_long_none_empty(text: str, size: int) -> None:
    parts = list(safe_slices(text, size))

    assert "".join(parts) == text
    assert all(0 < len(part) <= size for part in parts)


@pytest.mark.parametrize("name", sorted(SPECS))
def test_a_text_of_lines_has_as_many_tokens_in_slices_as_whole(name: str) -> None:
    encode = load(name).encode_ordinary
    text = (STDLIB / "argparse.py").read_text("utf-8") + (STDLIB / "inspect.py").read_text("utf-8")

    assert [count_with(encode, text, size) for size in (512, 4096, 65536)] == [len(encode(text))] * 3


def test_a_cut_is_made_at_a_line_a_word_or_else_anywhere_but_never_inside_a_token_if_there_is_a_choice() -> (
    None
):
    first = {
        text: next(safe_slices(text, 14))
        for text in (
            "one two;\nthree four",
            "one two;\n    three",
            "one two);\n/three four",
            "one two\n\n   \n  three",
            "one  two\n \n three four",
            "onetwothreefourfive",
            "one  twothreefour",
        )
    }

    assert first == {
        "one two;\nthree four": "one two;\n",
        "one two;\n    three": "one two;\n",
        "one two);\n/three four": "one",
        "one two\n\n   \n  three": "one two\n\n   \n",
        "one  two\n \n three four": "one  two\n \n",
        "onetwothreefourfive": "onetwothreefou",
        "one  twothreefour": "one  twothreef",
    }


WORDS = st.sampled_from(
    ("word", "Other", "12345", "x", "a//b", ");", "naïve", "的话", "it's", "😀", "_", "'")
)
ENDS = st.sampled_from((" ", "\n", "\n    ", ",\n\t", "\r\n"))


@given(st.lists(st.tuples(WORDS, ENDS), max_size=60), st.sampled_from(sorted(SPECS)))
def test_a_cut_where_a_word_or_a_line_ends_changes_no_count(words: list[tuple[str, str]], name: str) -> None:
    encode = load(name).encode_ordinary
    text = "".join(word + end for word, end in words) + "end"

    assert count_with(encode, text, size=24) == len(encode(text))


def test_a_text_that_makes_the_encoder_panic_is_estimated() -> None:
    # tiktoken 0.14 on o200k_base: a run of about a million spaces panics in its regular expression.
    spaces = " " * 2_000_000

    assert count_with(load("o200k_base").encode_ordinary, spaces, size=len(spaces)) == round(estimate(spaces))


def test_what_is_no_panic_is_raised() -> None:
    def encode(text: str) -> list[int]:
        raise KeyboardInterrupt(text)

    with pytest.raises(KeyboardInterrupt):
        count_with(encode, "x")


@pytest.mark.timeout(60)
def test_a_long_run_of_one_character_is_counted_before_the_timeout() -> None:
    # tiktoken 0.12 took minutes for some of these: its merges were quadratic.
    assert all(O200K.count(letter * 300_000) > 1000 for letter in ("a", " ", "的", "\n", "😀"))


# --- which counter ----------------------------------------------------------------------------------------


def test_the_estimator_and_the_models_tokenizer_choose_the_counter() -> None:
    chosen = {
        (estimator, tokenizer): counter_for(estimator, tokenizer)
        for estimator in ("chars4", "chars4_utf16", "tokenizer", "auto")
        for tokenizer in ("o200k_base", "cl100k_base", "openai", "claude", None)
    }

    assert {key: chosen[key] for key in chosen if key[0] == "chars4"} == {
        ("chars4", name): Chars4() for name in ("o200k_base", "cl100k_base", "openai", "claude", None)
    }
    assert chosen["chars4_utf16", "claude"] == Chars4Utf16()
    assert chosen["tokenizer", "o200k_base"] == chosen["auto", "o200k_base"] == Bpe("o200k_base")
    assert chosen["tokenizer", "cl100k_base"] == chosen["auto", "cl100k_base"] == Bpe("cl100k_base")
    assert chosen["tokenizer", "claude"] == chosen["tokenizer", None] == Bpe("o200k_base", exact=False)
    assert chosen["auto", "openai"] == ScriptAware(1.0)
    assert chosen["auto", "claude"] == ScriptAware(1.2)
    assert chosen["auto", None] == ScriptAware(1.1)


def test_an_estimator_that_is_not_known_is_refused() -> None:
    with pytest.raises(KeyError):
        counter_for("words", "o200k_base")


# --- the estimate against the real thing --------------------------------------------------------------------

RANDOM = random.Random(11)

ENGLISH = """The daemon keeps each conversation as a journal that only grows. When a request would no longer
fit the model's window, older messages give way to a summary, and everything that was removed can still be
read back. A compaction never touches the newest request of the user. If the provider rejects a request
because it is too long, the engine tries again with less, three times at most, and then says what takes
the room. Numbers such as 128000 or 16384 are limits in tokens, not in characters; don't confuse the two.
"""
CHINESE = """请修复登录页面的错误:当用户输入错误的密码时,系统没有显示提示信息。
另外,请不要修改数据库的结构,也不要改变公共接口。
我看了一下日志,发现问题出在缓存没有及时更新。建议在写入数据之后立即清除旧的缓存,这样下一次读取就会得到最新的结果。
测试全部通过之后再提交代码。长时间的会话会占满模型的上下文窗口,因此需要确定哪些消息可以安全地删除。
"""
JAPANESE = """ログイン画面の不具合を修正してください。
パスワードが間違っている場合にエラーメッセージが表示されません。
テストを実行したところ、三つの関数が失敗しました。原因はキャッシュが古いままになっていることでした。
書き込みの後でキャッシュを削除するように直しました。ただし、データベースの構造は変更しないでください。
"""


def _json() -> str:
    rows = [
        {
            "id": RANDOM.getrandbits(32),
            "name": RANDOM.choice(("loader", "cache", "session")),
            "path": f"src/{RANDOM.choice(('core', 'rpc'))}/file_{i}.py",
            "ok": RANDOM.random() < 0.5,
            "score": round(RANDOM.random(), 4),
            "tags": ["alpha", "beta"],
            "parent": None,
        }
        for i in range(200)
    ]
    return json.dumps(rows, separators=(",", ":")) + json.dumps(rows, indent=2)


def _logs() -> str:
    return "".join(
        f"2026-11-{RANDOM.randint(1, 28):02} {RANDOM.randint(0, 23):02}:{RANDOM.randint(0, 59):02}:07,{i:03} "
        f"{RANDOM.choice(('INFO', 'WARNING', 'ERROR'))} [worker-{i % 7}] app.db: query took "
        f"{RANDOM.randint(1, 9999)} ms, rows={RANDOM.randint(0, 500)}, "
        f"request_id={RANDOM.getrandbits(64):016x}\n"
        for i in range(400)
    )


def _emoji() -> str:
    faces = [chr(code) for code in range(0x1F600, 0x1F640)]
    return "".join(RANDOM.choice(faces) for _ in range(500)) + " done 🎉 shipped 🚀 " * 100


@pytest.mark.parametrize(
    ("kind", "text", "within"),
    [
        ("English", ENGLISH * 3, 0.12),
        ("Python", (STDLIB / "argparse.py").read_text("utf-8"), 0.12),
        ("Python with few comments", (STDLIB / "json" / "decoder.py").read_text("utf-8"), 0.12),
        ("Chinese", CHINESE * 3, 0.20),
        ("Japanese", JAPANESE * 3, 0.20),
        ("JSON", _json(), 0.20),
        ("base64", base64.b64encode(RANDOM.randbytes(30_000)).decode(), 0.20),
        ("hex", RANDOM.randbytes(10_000).hex(), 0.20),
        ("logs", _logs(), 0.20),
        ("emoji", _emoji(), 0.20),
    ],
)  # fmt: skip
def test_the_estimate_of_a_kind_of_text_is_near_its_tokens(kind: str, text: str, within: float) -> None:
    tokens = O200K.count(text)

    assert abs(estimate(text) - tokens) <= within * tokens, f"{kind}: {estimate(text) / tokens - 1:+.1%}"
