// What integrations/pi adds to pi: each message of a session as it ends, then a compaction of all of it but the end.
// node pi_speed.mjs EXTENSION ENTRIES.json KEEP PID: one line of JSON. PID is a file in which the daemon's number stands.
import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";

const [extension, file, keep, pid] = process.argv.slice(2);
const QUIET_MS = 3000;
const messages = JSON.parse(readFileSync(file, "utf8"));
const handlers = new Map();
const commands = new Map();
const told = [];
const path = [];
const byId = new Map();

const ctx = {
  cwd: process.cwd(),
  hasUI: true,
  ui: { notify: (text) => told.push(text), setStatus: () => {} },
  model: { id: "claude-opus-4-5", provider: "anthropic", contextWindow: 250_000 },
  getSystemPrompt: () => "You are a coding agent.",
  getContextUsage: () => undefined,
  sessionManager: {
    getSessionId: () => "speed",
    getLeafId: () => path.at(-1)?.id ?? null,
    getEntry: (id) => byId.get(id),
    getBranch: () => path,
  },
};
const { default: load } = await import(pathToFileURL(extension));
load({
  on: (name, handler) => handlers.set(name, handler),
  registerCommand: (name, command) => commands.set(name, command),
  registerTool: () => {},
  appendEntry: () => {},
});

/** Until the daemon has everything. */
async function taken() {
  const before = told.length;
  await commands.get("compactd").handler("state", ctx);
  if (told.length !== before + 1 || told.at(-1).startsWith("compactd:")) throw new Error(told.at(-1));
}

/** Milliseconds of processor that the daemon took (proc_pid_stat(5): fields 14 and 15, in hundredths of a second). */
function daemonMs() {
  const fields = readFileSync(`/proc/${readFileSync(pid, "utf8").trim()}/stat`, "utf8").split(") ")[1].split(" ");
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

handlers.get("session_start")({}, ctx);
await taken();
const held = [];
const processor = process.cpuUsage();
for (const [at, message] of messages.entries()) {
  const entry = { type: "message", id: `m${at}`, parentId: path.at(-1)?.id ?? null, timestamp: "2026-01-01T00:00:00Z", message };
  path.push(entry);
  byId.set(entry.id, entry);
  const began = performance.now();
  handlers.get("message_end")({ message }, ctx);
  held.push(performance.now() - began);
  // As in pi, where a model's next words are far away.
  await new Promise((resolve) => setTimeout(resolve, 1));
}
await taken();
const used = process.cpuUsage(processor);

const preparation = {
  firstKeptEntryId: `m${messages.length - Number(keep)}`,
  tokensBefore: 0,
  settings: { keepRecentTokens: 20_000 },
};
// The daemon reads what came in quiet moments: 200k tokens come over many minutes, not in a second.
await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
const before = daemonMs();
const began = performance.now();
const answer = await handlers.get("session_before_compact")({ preparation, signal: new AbortController().signal }, ctx);
const took = performance.now() - began;
const daemon = daemonMs() - before;
if (!answer?.compaction?.summary) throw new Error(told.at(-1));
handlers.get("session_shutdown")({}, ctx);
console.log(
  JSON.stringify({
    messages: messages.length,
    held_ms: Math.max(...held),
    processor_ms: (used.user + used.system) / 1_000 / messages.length,
    compaction_ms: took,
    daemon_ms: daemon,
    summary: answer.compaction.summary.length,
  }),
);
