/** The daemon's process: started without a shell, its stderr logged, its first words looked at. */

import { spawn, type ChildProcess } from "node:child_process";
import { PassThrough, type Readable, type Writable } from "node:stream";
import { oneLine } from "./plain.ts";

/** A running daemon. */
export interface Running {
  readonly reader: Readable;
  readonly writer: Writable;
  /** Why it is of no use: it could not be started, it ended, or what it says is no protocol. Never rejects. */
  readonly useless: Promise<string>;
  readonly pid: number | undefined;
  kill(): void;
}

export interface How {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Takes each line of stderr. */
  readonly log: (line: string) => void;
}

/** What LSP's framing begins with, in any case (LSP 3.17, base protocol). */
const FIRST_WORDS = "content-";
const LONGEST_LINE = 2000;
const KILL_AFTER_MS = 2000;

/** Starts the daemon. */
export function start(how: How): Running {
  const child = spawn(how.command, [...how.args], { cwd: how.cwd, env: how.env, stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
  const reader = new PassThrough();
  const useless = Promise.race([ended(child, how), notProtocol(child.stdout, reader)]);
  // Writes to a daemon that is gone: its end is told already.
  child.stdin.on("error", () => undefined);
  lines(child.stderr, how.log);
  return {
    reader,
    writer: child.stdin,
    useless,
    pid: child.pid,
    kill: () => kill(child),
  };
}

function kill(child: ChildProcess): void {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill();
  const harder = setTimeout(() => child.kill("SIGKILL"), KILL_AFTER_MS);
  child.once("exit", () => clearTimeout(harder));
}

function ended(child: ChildProcess, how: How): Promise<string> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(`${how.command} could not be started: ${error.message}`));
    child.once("exit", (code, signal) => resolve(`the daemon ended (${signal ?? `exit code ${code ?? "unknown"}`})`));
  });
}

/** Hands stdout on; resolves where its first bytes are no protocol, which are then not handed on. */
function notProtocol(stdout: Readable, reader: PassThrough): Promise<string> {
  return new Promise((resolve) => {
    let first = "";
    let isChecked = false;
    stdout.on("data", (chunk: Buffer) => {
      if (!isChecked) {
        first += chunk.toString("latin1");
        const begin = first.trimStart().slice(0, FIRST_WORDS.length).toLowerCase();
        if (begin !== FIRST_WORDS.slice(0, begin.length)) {
          stdout.destroy();
          reader.end();
          resolve(`what it says is not the protocol: “${oneLine(first, 120)}”`);
          return;
        }
        isChecked = begin.length === FIRST_WORDS.length;
      }
      if (!reader.write(chunk)) {
        stdout.pause();
        reader.once("drain", () => stdout.resume());
      }
    });
    stdout.on("end", () => reader.end());
    stdout.on("error", () => reader.end());
  });
}

function lines(stream: Readable, take: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    rest += chunk;
    const whole = rest.split("\n");
    rest = (whole.pop() ?? "").slice(-LONGEST_LINE);
    for (const line of whole) if (line.trim() !== "") take(oneLine(line, LONGEST_LINE));
  });
  stream.on("end", () => {
    if (rest.trim() !== "") take(oneLine(rest, LONGEST_LINE));
  });
  stream.on("error", () => undefined);
}
