/** What is known of each session, from `agent/event` and `agent/state` alone. No editor in here. */

import type { AgentEvent, CompactionResult, StartResult, StateResult, TokenUsage } from "./protocol.ts";

/** A compaction that is running. */
export interface Compacting {
  readonly id: string;
  readonly phase: string;
  /** 0 to 1. */
  readonly fraction: number;
}

/** One open session. */
export interface Status {
  readonly id: string;
  /** Null before anything was said. */
  readonly title: string | null;
  readonly model: string | null;
  /** It is only looked at here: `Sessions.request` takes it over before the first change. */
  readonly readOnly: boolean;
  /** Another program has it open for writing. */
  readonly held: boolean;
  readonly usage: TokenUsage;
  readonly messageCount: number;
  readonly compacting: Compacting | null;
  /** The last thing that went wrong; null once something went well again. */
  readonly failed: string | null;
  /** The last completed compaction told by an event. */
  readonly last: CompactionResult | null;
  /** As the daemon said last; null before it was asked. */
  readonly state: StateResult | null;
  /** Of the last event taken in. */
  readonly seq: number;
  /** A prompt is being answered. */
  readonly running: boolean;
}

/** A session as `session/start` answered. */
export function started(result: StartResult): Status {
  return {
    id: result.session_id,
    title: result.title,
    model: result.model,
    readOnly: result.read_only,
    held: false,
    usage: result.token_usage,
    messageCount: result.message_count,
    compacting: null,
    failed: null,
    last: null,
    state: null,
    seq: result.seq,
    running: false,
  };
}

/** The session with what `agent/state` said. */
export function withState(status: Status, state: StateResult): Status {
  return {
    ...status,
    state,
    title: state.title,
    model: state.model,
    usage: state.token_usage,
    messageCount: state.message_count,
    // What another program does with it is `unknown`, or `compacting`.
    held: status.readOnly && state.status !== "idle",
    last: state.compaction.last ?? status.last,
    compacting: state.compaction.running ? status.compacting : null,
    running: state.status === "running" || state.status === "streaming" || state.status === "executing_tools",
  };
}

/** The session after an event of its own. */
export function after(status: Status, event: AgentEvent): Status {
  const now = { ...status, seq: event.seq };
  switch (event.type) {
    case "usage_update":
      return { ...now, usage: event.usage };
    case "compaction_start":
      return { ...now, compacting: { id: event.compaction_id, phase: "", fraction: 0 } };
    case "compaction_progress":
      return { ...now, compacting: { id: event.compaction_id, phase: event.phase, fraction: event.fraction } };
    case "compaction_end":
      return {
        ...now,
        compacting: null,
        failed: event.status === "failed" ? (event.error?.message ?? event.result?.reason ?? "it failed") : null,
        last: event.status === "completed" && event.result ? event.result : status.last,
      };
    case "agent_start":
      return { ...now, running: true };
    case "agent_end":
      return { ...now, running: false, failed: null, usage: event.usage };
    case "agent_abort":
      return { ...now, running: false };
    case "error":
      return { ...now, running: false, failed: event.message };
    case "model_changed":
      return { ...now, model: event.model };
    case "writer_changed":
      // A compaction of a program that ended has no end.
      return { ...now, readOnly: event.owner !== "this", held: event.owner === "other", compacting: null };
    default:
      return now;
  }
}

/** Whether an event was missed before this one. */
export function hasGap(status: Status, event: AgentEvent): boolean {
  return event.seq > status.seq + 1;
}

/** Events after which the daemon's own account of the session is asked for. */
const TELLING: ReadonlySet<AgentEvent["type"]> = new Set([
  "usage_update",
  "compaction_end",
  "prune_end",
  "model_changed",
  "session_changed",
  "writer_changed",
  "agent_end",
  "agent_abort",
  "error",
]);

/** Whether `agent/state` has news after this event. */
export function isTelling(event: AgentEvent): boolean {
  return TELLING.has(event.type);
}

/** Whether the context itself, not its numbers alone, is another one after this event. */
export function changesContext(event: AgentEvent): boolean {
  return event.type === "usage_update" || event.type === "prune_end" || event.type === "compaction_end" || event.type === "writer_changed";
}
