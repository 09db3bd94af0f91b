/** What other extensions get from `activate`. */

import * as vscode from "vscode";
import type { Compactions } from "./compactions.ts";
import type { Gauge } from "./gauge.ts";
import type { GaugeItem } from "./gauge_item.ts";
import type { CompactionResult, Requests } from "./protocol.ts";
import type { Sessions } from "./sessions.ts";

/** Version 1: more may be added, nothing is taken away. */
export interface Api {
  readonly version: 1;
  /** What the status bar shows. */
  readonly gauge: () => Gauge;
  readonly onDidChangeGauge: vscode.Event<Gauge>;
  /** The current session's id; null if none is open. */
  readonly current: () => string | null;
  /** Opens a stored session, without its lock, and makes it current. The first request that changes it takes the lock. */
  readonly open: (sessionId: string) => Promise<void>;
  /** Compacts a session, by default the current one. Null where there is none, or it was cancelled. */
  readonly compact: (options?: { sessionId?: string; focus?: string; keepTokens?: number }) => Promise<CompactionResult | null>;
  /** Asks the daemon; it is started where it is not running. Types: `protocol.ts`. */
  readonly request: <M extends keyof Requests>(method: M, params: Requests[M]["params"]) => Promise<Requests[M]["result"]>;
}

export function apiOf(sessions: Sessions, compactions: Compactions, item: GaugeItem): Api {
  return {
    version: 1,
    gauge: () => item.now,
    onDidChangeGauge: item.onShow,
    current: () => sessions.current?.id ?? null,
    open: async (sessionId) => {
      await sessions.resume(sessionId);
      sessions.select(sessionId);
    },
    compact: async (options = {}) => {
      const id = options.sessionId ?? sessions.current?.id;
      if (id === undefined) return null;
      await sessions.resume(id);
      return compactions.run(id, { focus: options.focus ?? "", keep: options.keepTokens ?? null });
    },
    request: (method, params) => sessions.request(method, params),
  };
}
