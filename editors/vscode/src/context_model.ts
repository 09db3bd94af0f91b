/** A session's context in the extension, kept up to date with little asking. */

import type { Daemon } from "./daemon.ts";
import type { HistoryEntry } from "./protocol.ts";
import type { Sessions } from "./sessions.ts";

/** What a look at the daemon brought. */
export type Change = { readonly kind: "none" } | { readonly kind: "all" } | { readonly kind: "more"; readonly entries: readonly HistoryEntry[] };

/** Entries that fill any screen. */
const FIRST = 200;
/** Entries of a further page: small enough that nothing else waits for it. */
const PAGE = 1000;

export class ContextModel {
  /** In the context's order, as far as they are here. */
  entries: HistoryEntry[] = [];
  private next: string | null = null;
  private epoch: number | null = null;
  private work: Promise<unknown> = Promise.resolve();
  private readonly daemon: Daemon;
  private readonly sessions: Sessions;
  private readonly id: string;

  constructor(daemon: Daemon, sessions: Sessions, id: string) {
    this.daemon = daemon;
    this.sessions = sessions;
    this.id = id;
  }

  entry(id: string): HistoryEntry | undefined {
    return this.entries.find((each) => each.entry_id === id);
  }

  /** The entries that are looked at first; `rest` brings the others. */
  begin(): Promise<void> {
    return this.inTurn(async () => {
      const epoch = this.epochNow();
      const { entries, next } = await this.ask(FIRST, null);
      this.entries = entries;
      this.next = next;
      this.epoch = epoch;
    });
  }

  /** The entries behind those that are here, page by page. */
  rest(each: (more: readonly HistoryEntry[]) => void): Promise<void> {
    return this.inTurn(async () => {
      while (this.next !== null) {
        const { entries, next } = await this.ask(PAGE, this.next);
        this.entries.push(...entries);
        this.next = next;
        each(entries);
      }
    });
  }

  /** Looks again: only behind the last entry while the epoch is the same. */
  refresh(whole = false): Promise<Change> {
    return this.inTurn(() => this.look(whole));
  }

  /** One look at a time. */
  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.work.then(work, work);
    this.work = mine;
    return mine;
  }

  private epochNow(): number | null {
    return this.sessions.status(this.id)?.usage.epoch ?? null;
  }

  private async ask(limit: number | null, from: string | null): Promise<{ entries: HistoryEntry[]; next: string | null }> {
    const { entries, next } = await this.daemon.request("session/history", { session_id: this.id, in_context: true, from, limit });
    return { entries, next: next ?? null };
  }

  private async look(whole: boolean): Promise<Change> {
    const epoch = this.epochNow();
    const last = this.entries.at(-1)?.entry_id;
    if (whole || last === undefined || this.next !== null || epoch !== this.epoch) {
      this.entries = (await this.ask(null, null)).entries;
      this.next = null;
      this.epoch = epoch;
      return { kind: "all" };
    }
    const { entries } = await this.ask(null, last);
    const more = entries.filter((entry) => entry.entry_id !== last);
    this.entries.push(...more);
    return more.length === 0 ? { kind: "none" } : { kind: "more", entries: more };
  }
}
