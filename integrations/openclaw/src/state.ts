// What the process knows. OpenClaw loads a plugin several times: for its engine, for its tools, and to look at it. Each of
// these has its own modules, and all must use the same daemon and the same conversations.

import { closeDaemons, engineOf } from "../../node/src/engine.js";
import type { Conversation } from "./conversation.js";

interface State {
  engineOf: typeof engineOf;
  closeDaemons: typeof closeDaemons;
  /** By the ids of OpenClaw's sessions; the one that was used last comes last. */
  readonly conversations: Map<string, Conversation>;
  /** The keys of sub-agents' sessions -> the id of the session that began them. */
  readonly parents: Map<string, string>;
  /** The keys of sessions -> their newest ids. */
  readonly ids: Map<string, string>;
  /** The windows of models, once OpenClaw has said them. */
  readonly windows: Map<string, number>;
}

const KEY = Symbol.for("compactd.openclaw");
const place = globalThis as { [KEY]?: State | undefined };

export function state(): State {
  return (place[KEY] ??= {
    engineOf,
    closeDaemons,
    conversations: new Map(),
    parents: new Map(),
    ids: new Map(),
    windows: new Map(),
  });
}

/** End the daemon. What comes after it begins anew: it may be a newer plugin. */
export async function end(): Promise<void> {
  const { closeDaemons } = state();
  place[KEY] = undefined;
  await closeDaemons();
}

/** Set a value, and drop the oldest ones beyond `most`. */
export function keep<Value>(map: Map<string, Value>, key: string, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= most) break;
    map.delete(oldest);
  }
}
