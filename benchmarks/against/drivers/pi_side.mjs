// pi 0.87.1: its estimate, its cut, its preparation of a compaction, its opening of a session file.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { blocksOf, messagesIn, serve } from "./serving.mjs";

const inside = join(process.argv[2], "node_modules", "@earendil-works", "pi-coding-agent");
const load = (path) => import(pathToFileURL(join(inside, "dist", "core", path)).href);
const { estimateTokens, findCutPoint, prepareCompaction, DEFAULT_COMPACTION_SETTINGS } = await load(
  join("compaction", "compaction.js"),
);
const { loadEntriesFromFile, buildSessionContext } = await load("session-manager.js");
const { version } = JSON.parse(readFileSync(join(inside, "package.json"), "utf8"));

const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { total: 0 } };

function message(given, number) {
  const at = { timestamp: 1_750_000_000_000 + number };
  const blocks = blocksOf(given);
  const result = blocks.find((block) => block.type === "tool_result");
  if (result) {
    return {
      role: "toolResult",
      toolCallId: result.call_id,
      toolName: "tool",
      content: [{ type: "text", text: result.content }],
      isError: result.is_error ?? false,
      ...at,
    };
  }
  const content = blocks.map((block) =>
    block.type === "text"
      ? block
      : { type: "toolCall", id: block.call_id, name: block.name, arguments: block.arguments },
  );
  return given.role === "user"
    ? { role: "user", content, ...at }
    : { role: "assistant", content, api: "openai", provider: "openai", model: "gpt-4o", usage, stopReason: "stop", ...at };
}

function entriesOf(file) {
  let parentId = null;
  return messagesIn(file).map((given, number) => {
    const id = `e${number}`;
    const timestamp = new Date(1_750_000_000_000 + number).toISOString();
    const entry = { type: "message", id, parentId, timestamp, message: message(given, number) };
    parentId = id;
    return entry;
  });
}

function store(file, to) {
  const head = { type: "session", version: 3, id: "peer", timestamp: new Date(0).toISOString(), cwd: dirname(to) };
  writeFileSync(to, [head, ...entriesOf(file)].map((entry) => JSON.stringify(entry) + "\n").join(""));
}

const rows = {
  estimate(file) {
    const messages = entriesOf(file).map((entry) => entry.message);
    return () => ({ tokens: messages.reduce((sum, one) => sum + estimateTokens(one), 0) });
  },
  cut(file, keep) {
    const entries = entriesOf(file);
    return () => ({ cut: findCutPoint(entries, 0, entries.length, keep).firstKeptEntryIndex });
  },
  plan(file, keep) {
    const entries = entriesOf(file);
    const settings = { ...DEFAULT_COMPACTION_SETTINGS, keepRecentTokens: keep };
    return () => ({ messages: prepareCompaction(entries, settings).messagesToSummarize.length });
  },
  load(file) {
    return () => {
      const entries = loadEntriesFromFile(file);
      const context = buildSessionContext(entries);
      return { messages: context.messages.length, held: [entries, context] };
    };
  },
};
await serve(rows, version, store);
