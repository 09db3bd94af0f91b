"""Counting with OpenAI's own vocabularies, without network or environment variables."""

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

from compactd.core.tokens.counting import Chars4, Chars4Utf16, Habits, ScriptAware, script_aware
from compactd.core.tokens.estimate import SLICE_CHARS, estimate, slices
from compactd.core.tokens.image_rules import AreaRule
from compactd.models.tokenizers.counters import (
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
RANDOM = random.Random(11)


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
    code = (
        "from compactd.models.tokenizers.counters import Bpe; print(Bpe('o200k_base').count('hello world'))"
    )

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
    code = (
        "import sys, compactd.models.tokenizers.counters\n"
        "print('tiktoken' in sys.modules, 'zlib' in sys.modules)"
    )

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


@pytest.mark.timeout(60)
def test_megabytes_without_white_space_are_counted_in_slices() -> None:
    text = base64.b64encode(RANDOM.randbytes(1_500_000)).decode()

    assert max(len(part) for part in safe_slices(text)) <= SLICE_CHARS
    assert max(len(part) for part in slices(text)) <= SLICE_CHARS
    assert abs(estimate(text) / O200K.count(text) - 1) <= 0.2


def test_special_tokens_are_counted_as_the_text_they_are() -> None:
    texts = ("<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|> <|im_start|>user")

    assert all(O200K.count(text) > 3 and Bpe("cl100k_base").count(text) > 3 for text in texts)


def test_the_encoder_is_never_given_more_than_a_slice_whatever_the_text() -> None:
    # 64 Ki characters take it 3 to 5 ms, without the interpreter; the list of tokens less than 1 ms with it.
    given: list[int] = []

    def encode(text: str) -> list[int]:
        given.append(len(text))
        return [0] * len(text)

    texts = (
        "plain words " * 20_000,
        " " * 400_000,
        "\n" * 300_000,
        "的" * 300_000,
        "😀🎉" * 100_000,
        "a" * 300_000,
    )

    assert [count_with(encode, text) for text in texts] == [len(text) for text in texts]
    assert max(given) <= SLICE_CHARS


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
    openai = Habits(keeps_thinking=False)
    assert chosen["tokenizer", "o200k_base"] == chosen["auto", "o200k_base"]
    assert chosen["auto", "o200k_base"] == Bpe("o200k_base", habits=openai)
    assert chosen["tokenizer", "cl100k_base"] == chosen["auto", "cl100k_base"]
    assert chosen["auto", "cl100k_base"] == Bpe("cl100k_base", habits=openai)
    assert chosen["tokenizer", "claude"] == chosen["tokenizer", None] == Bpe("o200k_base", exact=False)
    assert chosen["auto", "openai"] == script_aware("openai")
    assert chosen["auto", "claude"] == script_aware("claude")
    assert chosen["auto", None] == script_aware(None)
    late = counter_for("auto", "claude", "claude-opus-4-7")
    assert late == script_aware("claude", "claude-opus-4-7")
    assert isinstance(late, ScriptAware)
    assert (late.name, late.factor) == ("script_aware:claude-4.7", 1.36)
    assert late.habits.pictures == AreaRule(edge=2576, most=4784)


def test_an_estimator_that_is_not_known_is_refused() -> None:
    with pytest.raises(KeyError):
        counter_for("words", "o200k_base")


# --- the estimate against the real thing --------------------------------------------------------------------

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


KATAKANA = """ソフトウェアのアップデートをダウンロードし、インストールボタンをクリックしてください。
パスワードをリセットするには、メールアドレスを入力します。サーバーのタイムアウトを変更しました。
"""
TRADITIONAL = """請修正登入頁面的錯誤:當使用者輸入錯誤密碼時,系統沒有顯示提示訊息。
另外請不要修改資料庫結構,也不要變更公開介面。我查看了日誌,發現問題出在快取沒有即時更新。
"""
CHINESE_CODE = """def load(path):
    # 读取配置文件,如果不存在则返回默认值
    if not os.path.exists(path):
        return {}  # 返回空字典
"""
REPORT = (
    "✅ Tests pass! 🚀 Shipped to production 🎉\n⚠️ One warning remains 🔧 fixing now 💪\n❌ failed: lint 🐛\n"
)


def _access_log() -> str:
    return "".join(
        f"10.{RANDOM.randint(0, 255)}.4.{RANDOM.randint(0, 255)} - - [22/Nov/2026:04:{i % 60:02}:07 +0000] "
        f'"GET /api/v1/items/{RANDOM.randint(1, 99999)}?page=2 HTTP/1.1" 200 {RANDOM.randint(100, 99999)} '
        '"-" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"\n'
        for i in range(200)
    )


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
        ("Japanese of loan words", KATAKANA * 3, 0.20),
        ("traditional Chinese", TRADITIONAL * 3, 0.20),
        ("comments in Chinese", CHINESE_CODE * 8, 0.20),
        ("JSON", _json(), 0.20),
        ("base64", base64.b64encode(RANDOM.randbytes(30_000)).decode(), 0.20),
        ("hex", RANDOM.randbytes(10_000).hex(), 0.20),
        ("logs", _logs(), 0.20),
        ("emoji", _emoji(), 0.20),
        ("emoji in a report", REPORT * 20, 0.20),
        ("joined emoji and flags", "👩‍💻👨‍👩‍👧‍👦🏳️‍🌈👍🏽🇩🇪🇯🇵❤️✅⚠️❌➡️" * 20, 0.20),
        ("access log", _access_log(), 0.20),
        ("base64 in lines", base64.encodebytes(RANDOM.randbytes(5_000)).decode(), 0.20),
    ],
)  # fmt: skip
def test_the_estimate_of_a_kind_of_text_is_near_its_tokens(kind: str, text: str, within: float) -> None:
    tokens = O200K.count(text)

    assert abs(estimate(text) - tokens) <= within * tokens, f"{kind}: {estimate(text) / tokens - 1:+.1%}"
