import assert from "node:assert/strict";
import { test } from "node:test";
import { ContextModel } from "../../../../editors/vscode/src/context_model.ts";
import type { Daemon } from "../../../../editors/vscode/src/daemon.ts";
import type { HistoryEntry, HistoryParams } from "../../../../editors/vscode/src/protocol.ts";
import type { Sessions } from "../../../../editors/vscode/src/sessions.ts";

/** A context that answers `session/history` as the daemon does, and keeps what it was asked. */
class Context {
  entries: HistoryEntry[] = [];
  epoch = 1;
  readonly asked: HistoryParams[] = [];

  add(count: number): void {
    for (let n = 0; n < count; n += 1) {
      this.entries.push({ entry_id: `e${this.entries.length + 1}`, kind: "message", at: 0, in_context: true, message: { role: "user", content: "a" } });
    }
  }

  model(): ContextModel {
    const request = async (_: string, params: HistoryParams) => {
      this.asked.push(params);
      const start = params.from ? this.entries.findIndex((each) => each.entry_id === params.from) : 0;
      const end = params.limit ? start + params.limit : this.entries.length;
      return { entries: this.entries.slice(start, end), ...(end < this.entries.length ? { next: this.entries[end]?.entry_id } : {}) };
    };
    return new ContextModel({ request } as unknown as Daemon, { status: () => ({ usage: { epoch: this.epoch } }) } as unknown as Sessions, "s1");
  }
}

test("a long context comes in pages, a screen of it first", async () => {
  const context = new Context();
  context.add(2500);
  const model = context.model();

  await model.begin();
  const first = model.entries.length;
  const pages: number[] = [];
  await model.rest((more) => pages.push(more.length));

  assert.deepEqual([first, pages], [200, [1000, 1000, 300]]);
  assert.deepEqual(model.entries, context.entries);
  assert.ok(context.asked.every((each) => each.in_context));
});

test("what was appended is asked for behind the last entry, and nothing else is", async () => {
  const context = new Context();
  context.add(3);
  const model = context.model();
  await model.begin();

  const none = await model.refresh();
  context.add(2);
  const more = await model.refresh();

  assert.deepEqual(none, { kind: "none" });
  assert.deepEqual(more.kind === "more" && more.entries.map((each) => each.entry_id), ["e4", "e5"]);
  assert.deepEqual(context.asked.map((each) => each.from), [null, "e3", "e3"]);
});

test("after a compaction, and while pages are missing, all of it is asked for anew", async () => {
  const context = new Context();
  context.add(300);
  const model = context.model();
  await model.begin();

  const early = await model.refresh();
  context.epoch = 2;
  context.entries = context.entries.slice(290);
  const later = await model.refresh();
  await model.rest(() => assert.fail("there is no further page"));

  assert.deepEqual([early.kind, later.kind, model.entries.length], ["all", "all", 10]);
});
