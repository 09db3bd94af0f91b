/** The daemon as the extension knows it: found, started, checked, started again, asked. */

import * as vscode from "vscode";
import { Backoff } from "./backoff.ts";
import type { Ears, Life } from "./client.ts";
import { NoDaemon, words } from "./errors.ts";
import { find } from "./find.ts";
import type { Phase } from "./gauge.ts";
import { placesToLook, exists, type Settings, environment, folder } from "./places.ts";
import { start, type Running } from "./process.ts";
import type { AgentEvent, Requests, ToolAnswer, ToolParams } from "./protocol.ts";
import { mismatch, spoken, type Spoken } from "./versions.ts";

type Tool = (params: ToolParams, token: vscode.CancellationToken) => Promise<ToolAnswer>;

/** How long the end of a process may come after the break of its pipe. */
const REASON_MS = 500;

/** A daemon that is ready, for the health check. */
export interface Ready {
  readonly said: Spoken;
  readonly command: string;
  readonly origin: string;
  readonly pid: number | undefined;
  readonly startedMs: number;
}

export class Daemon implements vscode.Disposable {
  readonly log: vscode.LogOutputChannel;
  private readonly phases = new vscode.EventEmitter<Phase>();
  private readonly events = new vscode.EventEmitter<AgentEvent>();
  private readonly returned = new vscode.EventEmitter<void>();
  readonly onPhase = this.phases.event;
  readonly onEvent = this.events.event;
  /** It died and is there again: sessions have to be opened again. */
  readonly onReturned = this.returned.event;
  phase: Phase = { kind: "off" };
  ready: Ready | null = null;
  private readonly backoff = new Backoff();
  private life: Promise<Life> | null = null;
  private running: Running | null = null;
  private trace: vscode.LogOutputChannel | null = null;
  private bornAt = 0;
  /** Rises with every start and stop: what belongs to an older one is let go. */
  private generation = 0;
  private again: ReturnType<typeof setTimeout> | null = null;
  private tool: Tool = async () => ({ content: "no tool is offered here", is_error: true });
  private readonly context: vscode.ExtensionContext;
  private readonly settings: () => Settings;

  constructor(context: vscode.ExtensionContext, log: vscode.LogOutputChannel, settings: () => Settings) {
    this.context = context;
    this.log = log;
    this.settings = settings;
  }

  /** Who runs the tools that a model calls. */
  runTools(tool: Tool): void {
    this.tool = tool;
  }

  /** Asks the daemon, which is started where it is not running. */
  async request<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    token?: vscode.CancellationToken,
  ): Promise<Requests[M]["result"]> {
    const life = await this.connected();
    return (await life.request(method, params, token)) as Requests[M]["result"];
  }

  /** Waits until it is there. Rejects with `NoDaemon`, which says what to do. */
  async connected(): Promise<Life> {
    if (this.life === null && this.phase.kind === "failed") throw new NoDaemon(this.phase.message);
    if (this.again === null) this.life ??= this.born();
    else this.bornAgain();
    return this.life ?? this.born();
  }

  /** A new start, whatever was. */
  async restart(): Promise<void> {
    await this.stop();
    this.backoff.reset();
    this.to({ kind: "off" });
    await this.connected();
    this.returned.fire();
  }

  async stop(): Promise<void> {
    this.generation += 1;
    if (this.again !== null) clearTimeout(this.again);
    this.again = null;
    const [life, running] = [this.life, this.running];
    this.life = this.running = this.ready = null;
    try {
      await (await life)?.stop();
    } catch {
      // It never lived, or is dead already.
    }
    running?.kill();
  }

  dispose(): Promise<void> {
    for (const each of [this.phases, this.events, this.returned]) each.dispose();
    this.trace?.dispose();
    return this.stop();
  }

  private async born(): Promise<Life> {
    const generation = ++this.generation;
    this.to({ kind: "starting" });
    this.bornAt = Date.now();
    try {
      const life = await this.connect(generation);
      if (generation !== this.generation) throw new NoDaemon("the daemon was stopped");
      this.to({ kind: "ready" });
      return life;
    } catch (error) {
      const message = words(error);
      if (generation === this.generation) {
        this.life = null;
        this.running?.kill();
        this.running = null;
        this.log.error(message);
        this.to({ kind: "failed", message });
      }
      throw error instanceof NoDaemon ? error : new NoDaemon(message);
    }
  }

  private async connect(generation: number): Promise<Life> {
    const settings = this.settings();
    const found = await find(await placesToLook(this.context, settings), exists);
    if ("message" in found) throw new NoDaemon(found.message);
    const command = [found.command, ...found.args].join(" ");
    this.log.info(`starting ${command} (${found.origin})`);
    const running = start({
      command: found.command,
      args: found.args,
      cwd: folder(),
      env: environment(settings),
      log: (line) => this.log.info(`daemon: ${line}`),
    });
    this.running = running;
    const useless = running.useless.then((why) => {
      throw new NoDaemon(`compactd did not start: ${why}. Command: ${command}. The health check shows where it was looked for.`);
    });
    const slow = deadline(settings.startTimeoutS, `compactd gave no answer within ${settings.startTimeoutS} s. Command: ${command}. Restart it, or see the log.`);
    useless.catch(() => undefined);
    // A pipe that broke says less than why its other end is gone.
    const speaking = this.speak(running, settings, generation).catch(async (error: unknown) => {
      await Promise.race([useless, pause(REASON_MS)]);
      throw error;
    });
    const life = await Promise.race([speaking, useless, slow.passed]).finally(slow.clear);
    const said = spoken(life.result);
    const wrong = mismatch(said);
    if (wrong !== null) {
      await life.stop().catch(() => undefined);
      throw new NoDaemon(wrong);
    }
    this.ready = { said, command, origin: found.origin, pid: running.pid, startedMs: Date.now() - this.bornAt };
    this.log.info(`ready after ${this.ready.startedMs} ms: ${said.name ?? ""} ${said.version ?? ""}, protocol ${said.protocol ?? ""}, pid ${running.pid ?? ""}`);
    return life;
  }

  private async speak(running: Running, settings: Settings, generation: number): Promise<Life> {
    const { connect } = await import("./client.ts");
    this.trace ??= vscode.window.createOutputChannel("compactd Trace", { log: true });
    const ears: Ears = {
      onEvent: (event) => {
        if (generation === this.generation) this.events.fire(event);
      },
      onTool: (params, token) => this.tool(params, token),
      onClosed: () => this.closed(generation),
    };
    return connect(running, { log: this.log, trace: this.trace, settings: settings.forDaemon }, ears);
  }

  /** The pipe broke. While it starts, `connect` tells; later it is started again. */
  private closed(generation: number): void {
    if (generation !== this.generation || this.phase.kind !== "ready") return;
    this.generation += 1;
    this.life = this.running = this.ready = null;
    this.later(Date.now() - this.bornAt);
  }

  /** After a life of `lifeMs`: a new one in a while, or none where too many ended in a row. */
  private later(lifeMs: number): void {
    const delayMs = this.backoff.next(lifeMs);
    if (delayMs === null) {
      this.to({ kind: "failed", message: "compactd ended five times in a row. See the log, then restart it." });
      return;
    }
    this.log.warn(`the daemon ended; it is started again in ${delayMs} ms`);
    this.to({ kind: "waiting", delayMs });
    this.again = setTimeout(() => this.bornAgain(), delayMs);
  }

  /** Now, without waiting any longer. Sessions have to be opened again. */
  private bornAgain(): void {
    if (this.again !== null) clearTimeout(this.again);
    this.again = null;
    this.life = this.born();
    const { generation } = this;
    this.life.then(
      () => this.returned.fire(),
      () => {
        if (generation === this.generation) this.later(0);
      },
    );
  }

  private to(phase: Phase): void {
    this.phase = phase;
    this.phases.fire(phase);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function deadline(seconds: number, message: string): { passed: Promise<never>; clear: () => void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const passed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new NoDaemon(message)), seconds * 1000);
  });
  return { passed, clear: () => clearTimeout(timer) };
}
