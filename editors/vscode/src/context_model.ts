/** A session's history in the extension, kept up to date with little asking. */

import type { Daemon } from "./daemon.ts";
import type { HistoryEntry } from "./protocol.ts";
import { inContext } from "./rows.ts";
import type { Sessions } from "./sessions.ts";

/** What a look at the daemon brought. */
export type Change = { readonly kind: "none" } | { readonly kind: "all" } | { readonly kind: "more"; readonly entries: readonly HistoryEntry[] };

export class ContextModel {
  entries: HistoryEntry[] = [];
  private epoch: number | null = null;
  private work: Promise<Change> = Promise.resolve({ kind: "none" });
  private readonly daemon: Daemon;
  private readonly sessions: Sessions;
  private readonly id: string;

  constructor(daemon: Daemon, sessions: Sessions, id: string) {
    this.daemon = daemon;
    this.sessions = sessions;
    this.id = id;
  }

  /** The context's entries in its order. */
  get context(): HistoryEntry[] {
    return inContext(this.entries);
  }

  entry(id: string): HistoryEntry | undefined {
    return this.entries.find((each) => each.entry_id === id);
  }

  /** Looks again: only behind the last entry while the epoch is the same. One look at a time. */
  refresh(whole = false): Promise<Change> {
    this.work = this.work.then(
      () => this.look(whole),
      () => this.look(true),
    );
    return this.work;
  }

  private async look(whole: boolean): Promise<Change> {
    const epoch = this.sessions.status(this.id)?.usage.epoch ?? null;
    const last = this.entries.at(-1)?.entry_id;
    if (whole || last === undefined || epoch !== this.epoch) {
      const { entries } = await this.daemon.request("session/history", { session_id: this.id });
      this.entries = entries;
      this.epoch = epoch;
      return { kind: "all" };
    }
    const { entries } = await this.daemon.request("session/history", { session_id: this.id, from: last });
    const more = entries.filter((entry) => entry.entry_id !== last);
    if (more.length === 0) return { kind: "none" };
    this.entries.push(...more);
    // A compaction or prune among them changed what was there.
    return more.every((entry) => entry.kind === "message") ? { kind: "more", entries: more } : this.look(true);
  }
}
