/** The gauge: a number and a colour, and in words where the number comes from. */

import { brief, count, oneLine } from "./plain.ts";
import type { Term, TokenUsage } from "./protocol.ts";
import type { Status } from "./status.ts";

/** What the daemon's process is doing. */
export type Phase =
  | { readonly kind: "off" }
  | { readonly kind: "starting" }
  | { readonly kind: "ready" }
  | { readonly kind: "waiting"; readonly delayMs: number }
  | { readonly kind: "failed"; readonly message: string };

/** What the status bar shows. */
export interface Gauge {
  readonly text: string;
  /** Plain text, a line a fact. */
  readonly tooltip: string;
  /** For a screen reader: whole sentences. */
  readonly label: string;
  readonly colour: "none" | "warning" | "error";
}

const CIRCLES = ["○", "◔", "◑", "◕", "●"] as const;

/** The gauge of a session, or of none. */
export function gauge(phase: Phase, status: Status | null): Gauge {
  switch (phase.kind) {
    case "off":
      return idle("○ compactd", "No session is open. Click for options.");
    case "starting":
      return idle("$(loading~spin) compactd", "The daemon is starting.");
    case "waiting":
      return { ...idle("$(loading~spin) compactd", "The daemon stopped and is started again."), colour: "warning" };
    case "failed":
      return { ...idle("$(error) compactd", phase.message), colour: "error" };
    case "ready":
      return status === null ? idle("○ compactd", "No session is open. Click for options.") : full(status);
  }
}

function idle(text: string, words: string): Gauge {
  return { text, tooltip: words, label: words.startsWith("compactd") ? words : `compactd: ${words}`, colour: "none" };
}

function full(status: Status): Gauge {
  const { usage } = status;
  const used = usage.current_context_tokens;
  const isGuess = usage.context_window_confidence === "guess";
  const percent = usage.percent === null ? null : Math.round(usage.percent);
  const number =
    percent === null ? (used === null ? "–" : brief(used)) : `${isGuess ? "~" : ""}${percent} %`;
  const circle = percent === null ? CIRCLES[0] : (CIRCLES[Math.min(4, Math.max(percent > 0 ? 1 : 0, Math.round(percent / 25)))] ?? "●");
  const { decision } = usage;
  const lock = status.held ? "$(lock) " : "";
  const text = status.compacting
    ? `$(loading~spin) compacting ${Math.round(100 * status.compacting.fraction)} %`
    : `${lock}${circle} ${number}`;
  return {
    text,
    tooltip: hover(status).join("\n"),
    label: spoken(status, percent, decision),
    colour: status.compacting ? "none" : decision === "over" || status.failed ? "error" : decision === "due" || isGuess ? "warning" : "none",
  };
}

/** The lines of the hover: used, window, when it compacts, each with its source. */
export function hover(status: Status): string[] {
  const { usage } = status;
  const budget = status.state?.budget ?? {};
  const lines = [
    `used ${usage.current_context_tokens === null ? "unknown" : count(usage.current_context_tokens)} tokens: ${sourceOfUsed(status)}`,
    `window ${usage.context_window === null ? "unknown" : count(usage.context_window)}: ${usage.context_window_confidence}${from(budget["window"])}`,
    `compacts at ${usage.threshold_tokens === null ? "no size" : count(usage.threshold_tokens)}${from(budget["threshold"])}`,
  ];
  const billed = usage.cost?.billed;
  if (typeof billed === "number") lines.push(`cost $${billed.toFixed(2)} so far, at list prices`);
  const { decision } = usage;
  if (decision === "due") lines.push("compacts before the next request");
  if (decision === "over") lines.push("over: the next request would not fit");
  if (status.compacting) lines.push("compacting now; click to cancel");
  if (status.last) {
    lines.push(
      `last: compacted ${count(status.last.messages_removed)} messages, ${brief(status.last.tokens_before)} → ${brief(status.last.tokens_after)}`,
    );
  }
  if (status.failed) lines.push(`failed: ${oneLine(status.failed)}`);
  if (status.held) lines.push("open in another program: here it can only be read");
  lines.push(`${oneLine(status.model ?? "no model", 80)} · session ${oneLine(status.id, 60)}`);
  return lines;
}

function sourceOfUsed(status: Status): string {
  const { usage } = status;
  const [base, trailing] = [status.state?.budget["base"], status.state?.budget["trailing"]];
  if (usage.current_context_source === "estimated" || typeof base?.value !== "number") {
    return usage.current_context_source;
  }
  const measured = `${count(base.value)} as the provider reported`;
  return typeof trailing?.value === "number" && trailing.value > 0
    ? `${measured} + ${count(trailing.value)} estimated after it`
    : measured;
}

function from(term: Term | undefined): string {
  return term ? ` (${oneLine(term.source, 120)})` : "";
}

function spoken(status: Status, percent: number | null, decision: TokenUsage["decision"]): string {
  const { usage } = status;
  const sentences: string[] = [];
  if (status.compacting) sentences.push(`Compacting, ${Math.round(100 * status.compacting.fraction)} percent done.`);
  const used = usage.current_context_tokens === null ? "an unknown number of" : count(usage.current_context_tokens);
  const size = usage.context_window === null ? "" : ` of ${count(usage.context_window)}`;
  sentences.push(
    percent === null ? `Context: ${used} tokens${size}.` : `Context ${percent} percent full: ${used}${size} tokens.`,
  );
  if (usage.context_window_confidence === "guess") sentences.push("The window is a guess.");
  if (decision === "due") sentences.push("It compacts before the next request.");
  if (decision === "over") sentences.push("The next request would not fit.");
  if (status.failed) sentences.push(`The last compaction or request failed: ${oneLine(status.failed)}`);
  if (status.held) sentences.push("Open in another program.");
  return sentences.join(" ");
}
