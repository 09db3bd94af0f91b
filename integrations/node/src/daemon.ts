// `compactd serve` as a child process: JSON-RPC, one object per line.

import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { findProgram } from "./program.js";

/** A request was refused. */
export class RpcError extends Error {
  /** The protocol's error code. protocol.md lists what it means. */
  readonly code: number;

  constructor(message: string, code: number) {
    super(message);
    this.name = "RpcError";
    this.code = code;
  }
}

/** The daemon did not start, ended, or did not answer in time. */
export class DaemonGone extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DaemonGone";
  }
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

interface Frame {
  id?: number | string | null;
  method?: string;
  result?: unknown;
  error?: { code: number; message: string };
}

const MAX_STDERR_CHARS = 2_000;
const END_MS = 2_000;

/** One daemon process. It does not keep this process alive, except while a request waits for an answer. */
export class Daemon {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;
  #parts: Buffer[] = [];
  #stderr = "";
  #ended: DaemonGone | undefined;

  /** `command`: the program and its arguments. If it cannot be started, the first request fails. */
  constructor(command: readonly string[]) {
    const [program = "compactd", ...rest] = command;
    this.#child = spawn(findProgram(program, process.cwd()), rest, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.on("error", (error: NodeJS.ErrnoException) => {
      this.#end(error.code === "ENOENT" ? `${program} was not found` : `${program} did not start: ${error.message}`);
    });
    this.#child.on("exit", (code, signal) => {
      const last = this.#stderr.trim().split("\n").at(-1) ?? "";
      this.#end(`the daemon ended (${signal ?? `exit code ${code}`})${last ? `: ${last.slice(0, 200)}` : ""}`);
    });
    this.#child.stdin.on("error", () => this.#end("the daemon does not read any more"));
    this.#child.stdout.on("data", (data: Buffer) => this.#read(data));
    this.#child.stderr.on("data", (data: Buffer) => {
      this.#stderr = (this.#stderr + data.toString()).slice(-MAX_STDERR_CHARS);
    });
    this.#hold(false);
  }

  get isAlive(): boolean {
    return this.#ended === undefined;
  }

  /** Return the result of a request. Rejects with `RpcError`, or with `DaemonGone` if there is none within `ms`.
   * `params`: an object, or its JSON. */
  request<T>(method: string, params: object | string, ms: number): Promise<T> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#next++;
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#settle(id)?.reject(new DaemonGone(`there was no answer to ${method} within ${ms / 1000} s`));
        this.#write({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id } });
      }, ms);
      if (this.#waiting.size === 0) this.#hold(true);
      this.#waiting.set(id, {
        resolve: (result) => (clearTimeout(timer), resolve(result as T)),
        reject: (error) => (clearTimeout(timer), reject(error)),
      });
      const given = typeof params === "string" ? params : JSON.stringify(params);
      this.#writeLine(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${given}}`);
    });
  }

  /** Stop the daemon. The end of its input is a clean end; it is killed if that takes too long. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#hold(true);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => this.#child.kill("SIGKILL"), END_MS);
      this.#child.once("exit", () => (clearTimeout(timer), resolve()));
      this.#child.stdin.end();
    });
  }

  /** Let the daemon keep this process alive, or not. */
  #hold(isHeld: boolean): void {
    // The pipes of a child process are sockets, which its type does not say.
    const pipes = [this.#child.stdin, this.#child.stdout, this.#child.stderr] as unknown as Socket[];
    for (const each of [this.#child, ...pipes]) {
      if (isHeld) each.ref();
      else each.unref();
    }
  }

  #write(frame: object): void {
    this.#writeLine(JSON.stringify(frame));
  }

  #writeLine(line: string): void {
    if (!this.#ended && this.#child.stdin.writable) this.#child.stdin.write(`${line}\n`);
  }

  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (waiting && this.#waiting.size === 0) this.#hold(false);
    return waiting;
  }

  #end(message: string): void {
    if (this.#ended) return;
    this.#ended = new DaemonGone(message);
    for (const id of [...this.#waiting.keys()]) this.#settle(id)?.reject(this.#ended);
  }

  #read(data: Buffer): void {
    let start = 0;
    for (let at = data.indexOf(10); at >= 0; at = data.indexOf(10, start)) {
      this.#parts.push(data.subarray(start, at));
      const line = Buffer.concat(this.#parts).toString();
      this.#parts = [];
      start = at + 1;
      this.#take(line);
    }
    if (start < data.length) this.#parts.push(data.subarray(start));
  }

  #take(line: string): void {
    let frame: Frame;
    try {
      frame = JSON.parse(line) as Frame;
    } catch {
      return this.#end("the daemon wrote something that is not its protocol");
    }
    if (frame === null || typeof frame !== "object") return;
    if (frame.method !== undefined) {
      if (frame.id !== undefined) {
        this.#write({ jsonrpc: "2.0", id: frame.id, error: { code: -32601, message: "not offered by this client" } });
      }
      return;
    }
    const waiting = typeof frame.id === "number" ? this.#settle(frame.id) : undefined;
    if (frame.error) waiting?.reject(new RpcError(frame.error.message, frame.error.code));
    else waiting?.resolve(frame.result);
  }
}
