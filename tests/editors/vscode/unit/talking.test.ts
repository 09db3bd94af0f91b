import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff } from "../../../../editors/vscode/src/backoff.ts";
import { Coalescer } from "../../../../editors/vscode/src/coalesce.ts";
import { CONTEXT_SHAPES, fromChat, fromContext, isOurs } from "../../../../editors/vscode/src/messages.ts";
import { start } from "../../../../editors/vscode/src/process.ts";
import { NEEDED, mismatch, spoken } from "../../../../editors/vscode/src/versions.ts";
import { clipped, edited, useOf } from "../../../../editors/vscode/src/tool_kinds.ts";

test("messages of our pages are taken", () => {
  for (const ours of [{ type: "ready" }, { type: "open", id: "e1" }, { type: "plan", focus: "", keep: null }, { type: "compact", focus: "x", keep: 2000 }, { type: "do", what: "undo" }, { type: "pin", id: "e1", pinned: true }]) {
    assert.deepEqual(fromContext(ours), ours);
  }
  assert.deepEqual(fromChat({ type: "link", href: "https://example.org/a" }), { type: "link", href: "https://example.org/a" });
  assert.deepEqual(fromChat({ type: "answer", call: "1", answer: "once", more: 1 }), { type: "answer", call: "1", answer: "once" });
});

test("messages of others are dropped", () => {
  for (const foreign of [null, undefined, 1, "ready", [], {}, { type: 1 }, { type: "open" }, { type: "open", id: 3 }, { type: "open", id: "x".repeat(2_000_000) }, { type: "plan", focus: "", keep: -1 }, { type: "plan", focus: "", keep: 1.5 }, { type: "compact", keep: 1 }, { type: "do", what: "delete" }, { type: "__proto__" }, { type: "toString" }]) {
    assert.equal(fromContext(foreign), null);
  }
  for (const foreign of [{ type: "prompt", text: "  " }, { type: "prompt" }, { type: "answer", call: "1", answer: "always" }, { type: "do", what: "undo; rm" }, { type: "copy" }, { type: "link", href: "command:workbench.action.quit" }, { type: "link", href: "https://EXAMPLE.org" }]) {
    assert.equal(fromChat(foreign), null);
  }
});

test("a page takes no message that lacks a field", () => {
  assert.equal(isOurs({ type: "entry", id: "e1", title: "t", text: "x", isPinned: false }, CONTEXT_SHAPES), true);
  assert.equal(isOurs({ type: "entry", id: "e1" }, CONTEXT_SHAPES), false);
  assert.equal(isOurs({ type: "constructor" }, CONTEXT_SHAPES), false);
});

test("a daemon that dies again and again is waited for longer, and then given up", () => {
  const backoff = new Backoff();

  assert.deepEqual([1, 2, 3, 4, 5, 6].map(() => backoff.next(100)), [250, 500, 1000, 2000, 4000, null]);
  assert.equal(backoff.next(60_000), 250);
});

test("a thousand events become one change", async () => {
  let changes = 0;
  await new Promise<void>((resolve) => {
    const coalescer = new Coalescer(() => {
      changes += 1;
      resolve();
    }, 5);
    for (let at = 0; at < 1000; at += 1) coalescer.ask();
  });

  assert.equal(changes, 1);
});

const result = (protocol: unknown, methods: readonly string[] = NEEDED) => ({
  serverInfo: { name: "compactd", version: "0.1.0" },
  capabilities: { experimental: { compactd: { protocol_version: protocol, methods } } },
});

test("a daemon of our protocol will do, with whatever it has beside", () => {
  assert.equal(mismatch(spoken(result("1.0"))), null);
  assert.equal(mismatch(spoken(result("1.7", [...NEEDED, "session/dream"]))), null);
});

test("an older, a newer, a lacking and a foreign one are told apart, each with what to do", () => {
  assert.match(mismatch(spoken(result("0.4"))) ?? "", /speaks protocol 0\.4; this extension needs 1\.0\. Update the daemon/);
  assert.match(mismatch(spoken(result("2.0"))) ?? "", /knows 1\.0\. Update the extension/);
  assert.match(mismatch(spoken(result("1.0", []))) ?? "", /lacks session\/start/);
  for (const odd of [null, 1, "x", {}, { capabilities: { experimental: 1 } }, result(1)]) {
    assert.match(mismatch(spoken(odd)) ?? "", /is not compactd, or older than protocol/);
  }
});

test("a call is read with care, also where its arguments are a text", () => {
  assert.deepEqual(useOf("read_file", '{"path": "a"}'), { kind: "read", path: "a", from: 1, lines: 2000 });
  assert.deepEqual(useOf("run_command", { command: "ls" }), { kind: "run", command: "ls" });
  for (const [name, given] of [["read_file", {}], ["read_file", "not json"], ["edit_file", { path: "a" }], ["run_command", { command: " " }], ["rm", {}]] as const) {
    assert.equal(typeof useOf(name, given), "string");
  }
});

test("an edit needs a place that is there once", () => {
  assert.deepEqual(edited("a b a", "b", "$&"), { text: "a $& a" });
  assert.ok("wrong" in edited("a b a", "a", "c"));
  assert.ok("wrong" in edited("a", "z", "c"));
  assert.ok("wrong" in edited("a", "", "c"));
  assert.deepEqual(edited(null, "", "new"), { text: "new" });
  assert.ok("wrong" in edited(null, "a", "b"));
});

test("long output is cut in its middle, with a mark", () => {
  assert.equal(clipped("abc", 10), "abc");
  assert.equal(clipped("a".repeat(6) + "b".repeat(6), 4), "aa\n[… 8 characters left out …]\nbb");
});

const node = (source: string, log: (line: string) => void = () => undefined) =>
  start({ command: process.execPath, args: ["-e", source], cwd: process.cwd(), env: process.env, log });

test("what is no protocol is not handed on, and told", async () => {
  const running = node("console.log('Welcome'); setInterval(() => {}, 1000)");

  assert.equal(await running.useless, "what it says is not the protocol: “Welcome”");
  running.kill();
});

test("an end is told with its code, and stderr goes to the log by lines", async () => {
  const lines: string[] = [];
  const running = node("process.stderr.write('no licence\\nbye'); process.exitCode = 3", (line) => lines.push(line));

  assert.equal(await running.useless, "the daemon ended (exit code 3)");
  assert.deepEqual(lines, ["no licence", "bye"]);
});

test("a program that cannot be started is told", async () => {
  const running = start({ command: "/nowhere/compactd", args: [], cwd: "/", env: {}, log: () => undefined });

  assert.match(await running.useless, /^\/nowhere\/compactd could not be started: /);
});

test("protocol passes through, however it is cut", async () => {
  const running = node("process.stdout.write('Con'); setTimeout(() => process.stdout.write('tent-Length: 2\\r\\n\\r\\n{}'), 5)");
  let said = "";
  for await (const chunk of running.reader) said += String(chunk);

  assert.equal(said, "Content-Length: 2\r\n\r\n{}");
});
