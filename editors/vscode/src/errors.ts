/** Errors of the daemon, and ours, as one line that a person can act on. */

import { ErrorCode } from "./protocol.ts";
import { oneLine } from "./plain.ts";

/** No daemon: what happened, and what to do. */
export class NoDaemon extends Error {}

/** The wire's code of an error; null where it is none of the wire's. */
export function codeOf(error: unknown): number | null {
  const code = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === "number" ? code : null;
}

/** Whether somebody, a person or we, took the request back. */
export function wasCancelled(error: unknown): boolean {
  return codeOf(error) === ErrorCode.Cancelled;
}

/** What an error says, in a line. */
export function words(error: unknown): string {
  return oneLine(error instanceof Error ? error.message : String(error), 600);
}
