// A whole session with vscode-jsonrpc, as an extension of VS Code has it: what happened goes to stdout as JSON.
// node vscode_client.cjs COMMAND ARGUMENTS...; NODE_PATH names the folder that has vscode-jsonrpc.
const { spawn } = require("node:child_process");
const rpc = require("vscode-jsonrpc/node");

const child = spawn(process.argv[2], process.argv.slice(3), { stdio: ["pipe", "pipe", "inherit"] });
const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(child.stdout),
  new rpc.StreamMessageWriter(child.stdin),
);
const ended = new Promise((resolve) => child.on("exit", resolve));
const events = [];
const seen = {};
let whenStarted = () => {};
connection.onError(([error]) => (seen.broken = String(error)));
connection.onNotification("window/logMessage", (params) => (seen.logged = params.message));
connection.onNotification("agent/event", (params) => {
  events.push(params);
  if (params.type === "compaction_start") whenStarted();
});
connection.listen();

const ask = (method, ...more) => connection.sendRequest(method, ...more);
const refusal = (promise) =>
  promise.then(
    (result) => ({ result }),
    (error) => ({ code: error.code, message: error.message, data: error.data }),
  );

async function main() {
  const made = await ask("initialize", {
    processId: process.pid,
    rootUri: null,
    capabilities: { window: { workDoneProgress: false } },
    initializationOptions: { compaction: { summary_tokens: 800 } },
  });
  await connection.sendNotification("initialized", {});
  seen.methods = made.capabilities.experimental.compactd.methods.length;
  seen.textDocumentSync = made.capabilities.textDocumentSync ?? null;

  const started = await ask("session/start", {
    session_id: "node",
    compaction: { context_window: 1_000_000 },
    client: { name: "vscode-jsonrpc" },
  });
  seen.session = started.session_id;
  const words = (n) => Array.from({ length: 260 }, (_, i) => `word${n}_${i} of part_${i % 17}.js`).join(" ");
  const messages = Array.from({ length: 80 }, (_, n) => ({
    role: n % 2 ? "assistant" : "user",
    content: words(n),
  }));
  messages[0].content = "Fix the 😀 loader";
  seen.appended = (await ask("session/append", { session_id: "node", messages })).entry_ids.length;

  const source = new rpc.CancellationTokenSource();
  whenStarted = () => source.cancel();
  seen.cancelled = await refusal(ask("session/compact", { session_id: "node", keep_recent: 2000 }, source.token));
  whenStarted = () => {};

  const progress = [];
  connection.onProgress(new rpc.ProgressType(), "my token", (value) => progress.push(value.kind));
  const done = await ask("session/compact", { session_id: "node", keep_recent: 2000, workDoneToken: "my token" });
  seen.compacted = [done.compacted, done.messages_after];
  seen.progress = [progress[0], progress.at(-1)];
  const context = await ask("session/context", { session_id: "node", format: "anthropic" });
  seen.first_role = context.messages[0].role;
  seen.unknown = await refusal(ask("session/context", { session_id: "nobody" }));
  seen.bad = await refusal(ask("session/append", { session_id: "node", messages: 7 }));
  seen.no_method = await refusal(ask("textDocument/hover", {}));
  const undone = await ask("workspace/executeCommand", { command: "compactd.undo", arguments: [{}] });
  seen.undone = undone.message_count;
  const original = await ask("session/expand", { session_id: "node", entry_ids: ["e1"] });
  seen.original = original.entries[0].message.content;
  seen.events = events.map((event) => event.type).filter((type) => type !== "compaction_progress");
  seen.seqs_rise_by_one = events.every((event, at) => event.seq === at + 1);
  seen.shutdown = await ask("shutdown");
  await connection.sendNotification("exit");
  seen.exit_code = await ended;
  process.stdout.write(JSON.stringify(seen));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
