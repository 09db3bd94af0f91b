// A client of the daemon in Node, with VS Code's JSON-RPC library. A conversation that outgrows its window is compacted.
//
//   sh examples/node/setup.sh                                   needed once; runs npm ci
//   node examples/node/session.cjs [COMMAND ARGUMENTS...]       default command: compactd --stdio
const { spawn } = require("node:child_process");
const rpc = require("vscode-jsonrpc/node");

const [command = "compactd", ...rest] = process.argv.slice(2);
const child = spawn(command, process.argv.length > 2 ? rest : ["--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
const daemon = rpc.createMessageConnection(
  new rpc.StreamMessageReader(child.stdout),
  new rpc.StreamMessageWriter(child.stdin),
);
const ended = new Promise((resolve) => child.on("exit", resolve));

// Events arrive between answers: how full the window is, and when a compaction begins and ends.
daemon.onNotification("agent/event", (event) => {
  if (event.type === "compaction_end" && event.status === "completed") {
    console.log(`event: ${event.result.messages_before} messages became ${event.result.messages_after}`);
  }
});
daemon.listen();

async function main() {
  await daemon.sendRequest("initialize", { processId: process.pid, rootUri: null, capabilities: {} });
  await daemon.sendNotification("initialized", {});

  const { session_id } = await daemon.sendRequest("session/start", { compaction: { context_window: 20_000 } });
  const messages = Array.from({ length: 40 }, (_, number) => ({
    role: number % 2 ? "assistant" : "user",
    content: `line ${number} `.repeat(200),
  }));
  const appended = await daemon.sendRequest("session/append", { session_id, messages });
  console.log(`the next request: ${appended.decision.kind}`);

  // Before each request to a model: compact if that is due. Then get the messages to send, in the model's format.
  const begun = await daemon.sendRequest("turn/begin", { session_id });
  console.log(`compacted: ${begun.compaction.compacted}`);
  const request = await daemon.sendRequest("session/context", { session_id, format: "anthropic" });
  console.log(`to send: the first by the ${request.messages[0].role}, below 10,000 tokens: ${request.tokens < 10_000}`);

  // The code of an error says what can be done about it; see protocol.md.
  await daemon.sendRequest("session/context", { session_id: "nobody" }).catch((error) => {
    console.log(`refused: ${error.code} ${error.message}`);
  });

  await daemon.sendRequest("shutdown");
  await daemon.sendNotification("exit");
  console.log(`ended with ${await ended}`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
