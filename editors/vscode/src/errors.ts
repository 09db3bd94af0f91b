/** Errors of the daemon, and ours, as one line that a person can act on. */

import { ErrorCode, type SessionLockedData } from "./protocol.ts";
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

/** A session that cannot be changed, because another program has it open. */
export function locked(error: unknown): Error {
  const { pid, name } = (error as { data?: Partial<SessionLockedData> | null }).data ?? {};
  const which = pid == null ? "" : ` (${name == null ? "" : `${oneLine(name, 40)}, `}process ${pid})`;
  return new Error(`This session is open in another program${which}: here it can only be read. Close it there, then do this again.`);
}

/** What an error says, in a line. */
export function words(error: unknown): string {
  return oneLine(error instanceof Error ? error.message : String(error), 600);
}
