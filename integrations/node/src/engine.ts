// One daemon for all agents of this process: started when it is needed, started again if it dies, and left alone for a
// while if that does not help.

import { createHash } from "node:crypto";
import { Daemon, DaemonGone, RpcError } from "./daemon.js";
import type { Json } from "./history.js";
import { Mirror } from "./mirror.js";

/** Milliseconds until a request is given up that neither compacts nor asks a model. */
export const CALL_MS = 10_000;
/** Milliseconds until a compaction is given up. The request is then sent with the messages as they are. */
export const COMPACT_MS = 120_000;
/** Milliseconds in which no request is sent to a daemon that could not be started or did not answer. Otherwise, each
 * model request of an agent would wait for it. */
const PAUSE_MS = 60_000;
/** The most sessions that are open in one process. The one that was used longest ago is closed; it is opened again
 * when it is needed. */
const MAX_SESSIONS = 256;
/** The most characters of a session's id. The daemon takes 256, and a mirror adds some. */
const MAX_ID_CHARS = 200;
const COMMAND = ["compactd", "serve"];
/** The protocol that this was written for. A daemon with another first number is not used. */
const PROTOCOL = 1;

/** How the session of a conversation is opened. */
export interface SessionOptions {
  /** The model as `provider/id`. Left out: as the agent says. */
  model?: string | undefined;
  /** The model's window in tokens. Left out: the daemon looks it up by the model's name. */
  contextWindow?: number | undefined;
  /** Settings of compactions, as `session/start` takes them. docs/settings.md lists them. */
  compaction?: { readonly [name: string]: Json } | undefined;
  /** The folder that the conversation is about. Left out: the process's current folder. */
  workingDir?: string | undefined;
  /** False: the session is kept in memory, and ends with the process. */
  persist?: boolean | undefined;
  /** The program that is the daemon, and its arguments. Left out: `compactd serve`, from the PATH. */
  command?: readonly string[] | undefined;
}

/** What an adapter adds to the options. */
export interface Opening extends SessionOptions {
  /** The framework's name, which the daemon's list of sessions shows. */
  client: string;
  /** The versions of the framework that the adapter was tested with, for the warning if it cannot read something. */
  tested: string;
  /** The session of the agent that started this one as a sub-agent. */
  parentSessionId?: string | undefined;
}

/** The daemon of this process. Get it with `engineOf`. */
export class Engine {
  readonly #command: readonly string[];
  #starting: Promise<Daemon> | undefined;
  #daemon: Daemon | undefined;
  readonly #mirrors = new Map<string, Mirror<unknown>>();
  #pausedUntil = 0;
  readonly #warned = new Set<string>();
  readonly #unfinished = new Set<() => Promise<void>>();

  constructor(command: readonly string[]) {
    this.#command = command;
  }

  /** Return the mirror of a conversation, with these options from now on. Starts nothing. */
  mirror<Part>(sessionId: string, options: Opening): Mirror<Part> {
    const id = validId(sessionId);
    const mirror = this.#mirrors.get(id) ?? new Mirror<unknown>(this, id, options);
    mirror.adopt(options);
    this.#mirrors.delete(id);
    this.#mirrors.set(id, mirror);
    for (const [oldId, old] of this.#mirrors) {
      if (this.#mirrors.size <= MAX_SESSIONS) break;
      this.#mirrors.delete(oldId);
      void old.close();
    }
    return mirror as Mirror<Part>;
  }

  /** Return the result of `work`, which gets the running daemon. If anything in it fails, warn and return undefined: an
   * agent must not fail because of compactd. There is one warning in the process for a daemon that fails, and one for
   * each other kind of error. */
  async attempt<T>(work: (daemon: Daemon) => Promise<T>, tested = ""): Promise<T | undefined> {
    if (Date.now() < this.#pausedUntil) return undefined;
    try {
      return await this.demand(work);
    } catch (error) {
      this.#note(error, tested);
      return undefined;
    }
  }

  /** Return the result of `work` like `attempt`, but let its errors through: for what a person asked for. */
  async demand<T>(work: (daemon: Daemon) => Promise<T>): Promise<T> {
    const daemon = await this.#started();
    try {
      return await work(daemon);
    } catch (error) {
      if (!(error instanceof DaemonGone) || daemon.isAlive) throw error;
      // It died. Another one does the work, if it can be started.
      return work(await this.#started());
    }
  }

  /** Start the daemon, so that the first model request does not wait for it. If it fails, the first request tries again,
   * and warns. */
  startSoon(): void {
    if (Date.now() >= this.#pausedUntil) void this.#started().catch(() => undefined);
  }

  /** Have this work done before the process ends by itself, unless `removeUnfinished` says it is done. */
  addUnfinished(work: () => Promise<void>): void {
    this.#unfinished.add(work);
  }

  removeUnfinished(work: () => Promise<void>): void {
    this.#unfinished.delete(work);
  }

  /** Do the unfinished work now. */
  async finish(): Promise<void> {
    for (const work of [...this.#unfinished]) await work();
  }

  /** Stop the daemon. The next request starts it again. */
  async close(): Promise<void> {
    await this.finish();
    const daemon = this.#daemon;
    this.#daemon = this.#starting = undefined;
    this.#mirrors.clear();
    await daemon?.close();
  }

  #started(): Promise<Daemon> {
    if (this.#daemon?.isAlive) return Promise.resolve(this.#daemon);
    this.#starting ??= this.#start().finally(() => (this.#starting = undefined));
    return this.#starting;
  }

  async #start(): Promise<Daemon> {
    const daemon = new Daemon(this.#command);
    try {
      const info = await daemon.request<{ protocol_version: string }>("daemon/info", {}, CALL_MS);
      if (Number.parseInt(info.protocol_version, 10) !== PROTOCOL) {
        throw new DaemonGone(`the daemon speaks protocol ${info.protocol_version}, this package ${PROTOCOL}`);
      }
    } catch (error) {
      void daemon.close();
      throw error;
    }
    this.#daemon = daemon;
    return daemon;
  }

  #note(error: unknown, tested: string): void {
    const isDaemons = error instanceof DaemonGone;
    if (isDaemons) this.#pausedUntil = Date.now() + PAUSE_MS;
    const name = error instanceof Error ? error.name : typeof error;
    const kind = isDaemons ? "" : name;
    const isOurs = isDaemons || error instanceof RpcError;
    const message = error instanceof Error ? error.message : String(error);
    let text = `compactd: ${isOurs ? message : `${name}: ${message}`}. The agent goes on with its messages as they are.`;
    if (isDaemons) text += " `compactd doctor` may say more.";
    else if (!isOurs && tested) text += ` This version of compactd was tested with ${tested}.`;
    this.warn(kind, text);
  }

  /** Warn, once in the process for each `kind`. */
  warn(kind: string, text: string): void {
    if (this.#warned.has(kind)) return;
    this.#warned.add(kind);
    process.emitWarning(text, "CompactdWarning");
  }
}

/** Return a framework's id as a session's: at most 256 characters, none of them a control character. Two ids stay two.
 * An id that is valid stays as it is. */
export function validId(sessionId: string): string {
  if (sessionId.length > 0 && sessionId.length <= MAX_ID_CHARS && !/[\p{C}\p{Zl}\p{Zp}]/u.test(sessionId)) {
    return sessionId;
  }
  const shown = sessionId.slice(0, MAX_ID_CHARS / 2).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ");
  return `${shown}…${createHash("sha256").update(JSON.stringify(sessionId)).digest("hex").slice(0, 16)}`;
}

const engines = new Map<string, Engine>();

/** Return the engine of this process. `command`: the program that is the daemon, and its arguments. */
export function engineOf(command: readonly string[] = COMMAND): Engine {
  const key = JSON.stringify(command);
  let engine = engines.get(key);
  if (!engine) {
    engine = new Engine(command);
    engines.set(key, engine);
    if (engines.size === 1) process.on("beforeExit", finishAll);
  }
  return engine;
}

function finishAll(): void {
  for (const engine of engines.values()) void engine.finish();
}

/** Stop the daemons of this process. Work goes on with new ones. */
export async function closeDaemons(): Promise<void> {
  await Promise.all([...engines.values()].map((engine) => engine.close()));
}
