// The items of a session in a file of their own, which any process can read.
//
// The file is a log: each line is one change, written at once. Several processes may write; the order of the lines is
// what happened. A process that is killed leaves at most a line without its end, which is skipped.

import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { dataFolder } from "../program.js";
import { isSame, sendable } from "../history.js";
import type { Item } from "./items.js";

/** The file begins with a random name of its own, in so many bytes. */
const HEAD_BYTES = 46;

/** A change of the items. `op` names it: a change whose name was already there is not made again. */
type Change = { op: string } & (
  | { add: Item[] }
  | { pop: true }
  | { clear: true }
  | { items: Item[] }
  | { expected: Item[]; replacement: Item[] }
);
/** A change without its name. */
export type NewChange = Change extends infer Each ? (Each extends Change ? Omit<Each, "op"> : never) : never;
/** What a change did. */
interface Outcome {
  /** The item that was removed. */
  popped?: Item | undefined;
  /** The change itself, if it was made again under the same name with other contents. */
  differs?: boolean;
  /** True if the items did not end as the change expected. */
  mismatch?: boolean;
}

/** Items in `FOLDER/openai-agents/DIGEST.jsonl`. The session's id is no path. */
export class ItemStore {
  readonly path: string;
  readonly #sessionId: string;
  #offset = 0;
  #items: Item[] = [];
  #head: Buffer | undefined;
  #outcomes = new Map<string, Outcome & { change: string }>();
  #queue: Promise<unknown> = Promise.resolve();

  /** `folder`: undefined for compactd's data folder. */
  constructor(sessionId: string, folder: string = join(dataFolder(), "openai-agents")) {
    const digest = createHash("sha256").update(JSON.stringify(sessionId)).digest("hex").slice(0, 32);
    this.path = join(folder, `${digest}.jsonl`);
    this.#sessionId = sessionId;
  }

  /** Return all items, oldest first. They are new objects. */
  read(): Promise<Item[]> {
    return this.#inTurn(async () => {
      await this.#catchUp();
      return structuredClone(this.#items);
    });
  }

  /** Make a change. It is on disk when this returns. `op`: a name under which it is made at most once. */
  change(change: NewChange, op: string = randomUUID()): Promise<Outcome> {
    return this.#inTurn(async () => {
      await this.#catchUp();
      const body = sendable(change);
      const known = this.#outcomes.get(op);
      if (known) return { ...known, differs: known.change !== body };
      const line = `{"op":${sendable(op)},${body.slice(1)}`;
      const head = this.#head ? "" : `{"file":"${randomUUID()}","session":${sendable(this.#sessionId)}}\n`;
      await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
      const file = await open(this.path, "a", 0o600);
      try {
        // The first newline ends a line that another process left unfinished.
        await file.appendFile(`${head}\n${line}\n`);
        await file.datasync();
      } finally {
        await file.close();
      }
      await this.#catchUp();
      const outcome = this.#outcomes.get(op);
      if (!outcome) throw new Error(`${this.path} was changed or removed by another program`);
      return outcome;
    });
  }

  /** Remove the file. */
  async delete(): Promise<void> {
    await this.#inTurn(async () => {
      await rm(this.path, { force: true });
      this.#reset();
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }

  #reset(): void {
    this.#offset = 0;
    this.#items = [];
    this.#outcomes = new Map();
    this.#head = undefined;
  }

  /** Read what was written since the last time. */
  async #catchUp(): Promise<void> {
    let file;
    try {
      file = await open(this.path, "r");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return this.#reset();
    }
    try {
      const { size } = await file.stat();
      const head = Buffer.alloc(HEAD_BYTES);
      await file.read(head, 0, HEAD_BYTES, 0);
      // Another process may have removed the file and begun it anew.
      if (!this.#head?.equals(head)) this.#reset();
      if (size) this.#head = head;
      if (size <= this.#offset) return;
      const data = Buffer.alloc(size - this.#offset);
      const { bytesRead } = await file.read(data, 0, data.length, this.#offset);
      const end = data.subarray(0, bytesRead).lastIndexOf(10) + 1;
      this.#offset += end;
      for (const line of data.subarray(0, end).toString().split("\n")) if (line) this.#take(line);
    } finally {
      await file.close();
    }
  }

  #take(line: string): void {
    let change: Change;
    try {
      change = JSON.parse(line) as Change;
    } catch {
      return; // It was never finished.
    }
    if (typeof change?.op !== "string" || this.#outcomes.has(change.op)) return;
    const { op, ...rest } = change;
    this.#outcomes.set(op, { ...this.#make(change), change: sendable(rest) });
  }

  #make(change: Change): Outcome {
    if ("add" in change) {
      this.#items.push(...change.add);
    } else if ("pop" in change) {
      return { popped: this.#items.pop() };
    } else if ("clear" in change) {
      this.#items = [];
    } else if ("items" in change) {
      this.#items = change.items;
    } else {
      const start = this.#items.length - change.expected.length;
      if (start < 0 || !isSame(this.#items.slice(start), change.expected)) return { mismatch: true };
      this.#items.splice(start, change.expected.length, ...change.replacement);
    }
    return {};
  }
}
