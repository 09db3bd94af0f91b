// `compactd serve` as a child process: JSON-RPC, one object a line. Every request has a deadline; a daemon that ends
// fails those that wait.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, resolve, sep } from "node:path";

/** A request that was refused, was too late, or found no daemon; the message is one line for a person. */
export class DaemonError extends Error {
  readonly code: number | undefined;

  constructor(message: string, code?: number) {
    super(message);
    this.name = "DaemonError";
    this.code = code;
  }
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: DaemonError): void;
}

interface Frame {
  id?: number | string | null;
  method?: string;
  result?: unknown;
  error?: { code: number; message: string };
}

/** Of the daemon's standard error, for the line that says why it ended. */
const MOST_STDERR = 2_000;
/** What a daemon that was told to end may take, in milliseconds. */
const END_MS = 2_000;

/** The absolute path of `command`: a bare name is looked up in the folders of PATH that are absolute and not in the
 * project. What came with a cloned repository is not run because the agent stands in it. */
function programOf(command: string, cwd: string): string {
  if (/[/\\]/.test(command)) return command;
  const real = (path: string) => {
    try {
      return realpathSync(path);
    } catch {
      return resolve(path);
    }
  };
  const home = real(homedir());
  let root = real(cwd);
  for (let folder = root; folder !== dirname(folder) && folder !== home && !home.startsWith(folder + sep); folder = dirname(folder))
    if ([".git", ".hg", "pyproject.toml", "package.json"].some((mark) => existsSync(join(folder, mark)))) root = folder;
  const isInside = (path: string) => [resolve(path), real(path)].some((each) => each === root || each.startsWith(root + sep));
  for (const entry of (process.env.PATH ?? "").split(delimiter)) {
    for (const ending of process.platform === "win32" ? [".exe", ".cmd"] : [""]) {
      const path = join(entry, command + ending);
      if (isAbsolute(entry) && existsSync(path) && !isInside(entry) && !isInside(path)) return path;
    }
  }
  // A path that is nowhere: `spawn` then says so.
  return join(sep, "nowhere", command);
}

export class Daemon {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;
  #parts: Buffer[] = [];
  #stderr = "";
  #ended: DaemonError | undefined;

  /** Spawns it; a command that is not there shows in the first request. */
  constructor(command: string, cwd: string) {
    this.#child = spawn(programOf(command, cwd), ["serve"], { cwd, stdio: ["pipe", "pipe", "pipe"] });
    this.#child.on("error", (error: NodeJS.ErrnoException) => {
      this.#end(error.code === "ENOENT" ? `${command} was not found` : `${command} did not start: ${error.message}`);
    });
    this.#child.on("exit", (code, signal) => {
      const last = this.#stderr.trim().split("\n").at(-1) ?? "";
      this.#end(`the daemon ended (${signal ?? `exit code ${code}`})${last ? `: ${last.slice(0, 200)}` : ""}`);
    });
    this.#child.stdin?.on("error", () => this.#end("the daemon does not read any more"));
    this.#child.stdout?.on("data", (data: Buffer) => this.#read(data));
    this.#child.stderr?.on("data", (data: Buffer) => {
      this.#stderr = (this.#stderr + data.toString()).slice(-MOST_STDERR);
    });
  }

  get isAlive(): boolean {
    return this.#ended === undefined;
  }

  /** The result; rejects with `DaemonError` after `ms`, or when `signal` says so. */
  request<T>(method: string, params: object, ms: number, signal?: AbortSignal): Promise<T> {
    if (this.#ended) return Promise.reject(this.#ended);
    if (signal?.aborted) return Promise.reject(new DaemonError("cancelled"));
    const id = this.#next++;
    return new Promise<T>((resolve, reject) => {
      const leave = (message: string) => {
        this.#settle(id)?.reject(new DaemonError(message));
        this.#write({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id } });
      };
      const stop = () => leave("cancelled");
      const timer = setTimeout(() => leave(`no answer to ${method} within ${ms / 1000} s`), ms);
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
      };
      signal?.addEventListener("abort", stop, { once: true });
      this.#waiting.set(id, {
        resolve: (result) => (done(), resolve(result as T)),
        reject: (error) => (done(), reject(error)),
      });
      this.#write({ jsonrpc: "2.0", id, method, params });
    });
  }

  /** Ends it: the end of its input is a clean end, and it is killed where that takes too long. */
  close(): void {
    this.#child.stdin?.end();
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), END_MS);
    timer.unref();
    this.#child.once("exit", () => clearTimeout(timer));
    // A daemon that finishes its work does not keep the agent from ending.
    this.#child.unref();
  }

  #write(frame: object): void {
    if (!this.#ended && this.#child.stdin?.writable) this.#child.stdin.write(`${JSON.stringify(frame)}\n`);
  }

  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  #end(message: string): void {
    if (this.#ended) return;
    this.#ended = new DaemonError(message);
    for (const id of [...this.#waiting.keys()]) this.#settle(id)?.reject(this.#ended);
  }

  #read(data: Buffer): void {
    let start = 0;
    for (let at = data.indexOf(10); at >= 0; at = data.indexOf(10, start)) {
      this.#parts.push(data.subarray(start, at));
      const line = Buffer.concat(this.#parts).toString();
      this.#parts = [];
      start = at + 1;
      this.#took(line);
    }
    if (start < data.length) this.#parts.push(data.subarray(start));
  }

  #took(line: string): void {
    let frame: Frame;
    try {
      frame = JSON.parse(line) as Frame;
    } catch {
      return this.#end("the daemon wrote something that is not its protocol");
    }
    if (frame === null || typeof frame !== "object") return;
    if (frame.method !== undefined) {
      // Nothing is asked of this client that it offered to answer.
      if (frame.id !== undefined)
        this.#write({ jsonrpc: "2.0", id: frame.id, error: { code: -32601, message: "not offered" } });
      return;
    }
    const waiting = typeof frame.id === "number" ? this.#settle(frame.id) : undefined;
    if (frame.error) waiting?.reject(new DaemonError(frame.error.message, frame.error.code));
    else waiting?.resolve(frame.result);
  }
}
