"""Compact a conversation that was loaded into a daemon: the request before, the compaction, its progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.exit_codes import USAGE, CommandError, bug_hint
from compactd.cli.framework.load_file import TIMEOUT_S
from compactd.cli.framework.model_facts import ModelFacts
from compactd.cli.framework.progress import ProgressSpinner
from compactd.cli.inspect.anatomy import MessagePlace, anatomy_of
from compactd.cli.inspect.context import RequestBreakdown, breakdown_of
from compactd.client import Client, DaemonGone, Event, RpcError
from compactd.formats.files.session_file import MessageLine
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import CompactionResult, Retention


def check_sizes(command: str, *sizes: int | None) -> None:
    """Raise `CommandError` if more than one of --target, --keep-recent and --keep-messages was given."""
    if sum(size is not None for size in sizes) > 1:
        raise CommandError(
            "--target, --keep-recent and --keep-messages cannot be combined.",
            hint=f"Use one of them. See `compactd {command} --help`.",
            exit_code=USAGE,
        )


def show_progress(waiting: ProgressSpinner) -> Callable[[Event], None]:
    """Return a listener for a daemon's events that shows the progress of a compaction in `waiting`."""

    def tell(event: Event) -> None:
        fraction = event.fields.get("fraction")
        if event.type == "compaction_progress" and isinstance(fraction, float):
            waiting.set_text(f"compacting: {event.fields.get('phase')} {fraction:.0%}")

    return tell


def request_before(
    conversation: LoadedConversation, known: ModelFacts, lines: Sequence[MessageLine]
) -> RequestBreakdown:
    """Return the next request before the compaction, which contains the messages `lines`.

    If `lines` include messages that an earlier compaction removed (`--all`), no such request was ever made.
    Then every size is an estimate.
    """
    messages = [message for message, _ in lines]
    parts = anatomy_of(
        messages,
        [MessagePlace(0, 0)] * len(messages),
        known.counter,
        system_tokens=known.system_tokens,
        tools_tokens=known.tools_tokens,
        mcp_tokens=known.mcp_tokens,
        most=0,
    ).parts
    if len(lines) != len(conversation.live):
        return breakdown_of(parts, sum(parts.values()))
    return breakdown_of(parts, known.state.token_usage.current_context_tokens or 0)


def compact_session(
    client: Client, session_id: str, file: str, options: Mapping[str, object]
) -> CompactionResult:
    """Compact the daemon's session `session_id`, which was made from the file `file`. `options` are further
    params of `session/compact`. Raise `CommandError` if it fails.
    """
    params = {"session_id": session_id, **options}
    try:
        return client.ask("session/compact", params, CompactionResult, timeout_s=TIMEOUT_S)
    except RpcError as error:
        hint = bug_hint(error)
        if error.code == CannotFit.code:
            hint = f"`compactd inspect {file}` shows what is large."
        raise CommandError(
            f"compaction failed: {error.message}", hint=hint, code=error.code, data=error.data
        ) from error
    except (DaemonGone, TimeoutError) as error:
        raise CommandError(f"compaction failed: {error}", hint="Nothing was written.") from error


def retention_text(retention: Retention) -> str:
    """Return a text that says how many details of the removed messages were kept."""
    total = facts_total(retention)
    if not total:
        return "no detail (such as a path or a number) occurred more than once in the removed messages"
    return (
        f"{100 * retention.score:.0f} % of the details that came up more than once in what was removed:"
        f" {retention.kept:,} of {'at least ' if not is_total_known(retention) else ''}{total:,}"
    )


def facts_total(retention: Retention) -> int:
    """Return the number of facts, kept and lost. The number is computed from the score, because
    `retention.lost` contains at most `MAX_LOST` facts.
    """
    return round(retention.kept / retention.score) if retention.kept else len(retention.lost)


def is_total_known(retention: Retention) -> bool:
    """Return whether `facts_total` is exact. If it is not, all facts are lost, and there may be more."""
    from compactd.core.summary.retention import MAX_LOST

    return bool(retention.kept) or len(retention.lost) < MAX_LOST
