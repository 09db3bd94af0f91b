/** Whether a daemon speaks what this extension was built for. */

import { PROTOCOL_VERSION } from "./protocol.ts";

/** What the extension cannot do without; a daemon without one of them is too old. */
export const NEEDED = [
  "session/start",
  "session/history",
  "session/compact",
  "session/expand",
  "session/search",
  "session/undo",
  "session/redo",
  "session/import",
  "agent/state",
  "agent/prompt",
] as const;

/** What `initialize` said of the daemon, as far as it could be read. */
export interface Spoken {
  readonly name: string | null;
  readonly version: string | null;
  readonly protocol: string | null;
  readonly methods: readonly string[];
}

/** Reads the result of `initialize`. */
export function spoken(result: unknown): Spoken {
  const server = member(result, "serverInfo");
  const own = member(member(member(result, "capabilities"), "experimental"), "compactd");
  const methods = member(own, "methods");
  return {
    name: text(member(server, "name")),
    version: text(member(server, "version")),
    protocol: text(member(own, "protocol_version")),
    methods: Array.isArray(methods) ? methods.filter((method) => typeof method === "string") : [],
  };
}

/** Null where the daemon will do; else what is wrong, and what to do. */
export function mismatch(said: Spoken): string | null {
  const who = `${said.name ?? "The program"} ${said.version ?? "(no version)"}`;
  if (said.protocol === null) {
    return `${who} is not compactd, or older than protocol ${PROTOCOL_VERSION}. Update it: \`pipx upgrade compactd\`.`;
  }
  const [theirs, ours] = [major(said.protocol), major(PROTOCOL_VERSION)];
  if (theirs < ours) {
    return `${who} speaks protocol ${said.protocol}; this extension needs ${PROTOCOL_VERSION}. Update the daemon: \`pipx upgrade compactd\`.`;
  }
  if (theirs > ours) {
    return `${who} speaks protocol ${said.protocol}; this extension knows ${PROTOCOL_VERSION}. Update the extension.`;
  }
  const missing = NEEDED.filter((method) => !said.methods.includes(method));
  if (missing.length > 0) {
    return `${who} lacks ${missing.join(", ")}. Update the daemon: \`pipx upgrade compactd\`.`;
  }
  return null;
}

function major(version: string): number {
  return Number.parseInt(version, 10) || 0;
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
