// The plugin's options: `plugins.entries.compactd.config` of OpenClaw's configuration.

import type { SessionOptions } from "../../node/src/engine.js";

const LEVELS = ["observe", "light", "default", "strong"] as const;
type Level = (typeof LEVELS)[number];

export interface Options extends SessionOptions {
  /** How tool outputs are shortened before they enter a conversation. Undefined: they stay as they are. */
  reduce?: Level | undefined;
  /** False: the model does not get the tool `recall`. */
  recall: boolean;
}

/** Return the options. OpenClaw has compared them with the schema of the manifest. */
export function optionsOf(given: { readonly [name: string]: unknown } = {}): Options {
  const { contextWindow, compaction, persist, command, reduce, recall } = given;
  return {
    ...(typeof contextWindow === "number" ? { contextWindow } : {}),
    ...(typeof compaction === "object" && compaction !== null
      ? { compaction: compaction as SessionOptions["compaction"] }
      : {}),
    ...(typeof persist === "boolean" ? { persist } : {}),
    ...(Array.isArray(command) ? { command: command.map(String) } : {}),
    reduce: LEVELS.find((level) => level === reduce),
    recall: recall !== false,
  };
}
