// A client of which every type was generated: node client.js COMMAND ARGUMENTS...; `protocol.d.ts` is beside it.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Compactd } from "./protocol";

type Requests = Required<NonNullable<Compactd["requests"]>>;
type Named = { [Name in keyof Requests as string extends Name ? never : Name]: Requests[Name] };
type Method = keyof Named & string;
type Params<M extends Method> = Named[M] extends { params: infer P } ? P : Record<string, never>;
type Result<M extends Method> = Named[M] extends { result: infer R } ? R : never;
type Event = NonNullable<Compactd["event"]>;

const daemon = spawn(process.argv[2]!, process.argv.slice(3), { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => daemon.on("exit", resolve));
const lines = createInterface({ input: daemon.stdout })[Symbol.asyncIterator]();
const events: Event[] = [];

async function ask<M extends Method>(method: M, params: Params<M>): Promise<Result<M>> {
  daemon.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) + "\n");
  for (;;) {
    const told = JSON.parse((await lines.next()).value as string);
    if (told.method === "agent/event") events.push(told.params as Event);
    else if (told.id === 1) return told.result as Result<M>;
  }
}

async function main(): Promise<void> {
  const started = await ask("session/start", { session_id: "generated", compaction: { context_window: 20_000 } });
  const session_id = started.session_id;
  const messages = Array.from({ length: 40 }, (_, n) => ({
    role: n % 2 ? "assistant" : "user",
    content: `line ${n} `.repeat(200),
  }));
  const appended = await ask("session/append", { session_id, messages });
  const begun = await ask("turn/begin", { session_id });
  const context = await ask("session/context", { session_id, format: "openai" });
  const listed = await ask("session/list", {});
  const state = await ask("agent/state", { session_id });
  // @ts-expect-error: a parameter that there is not
  const _typed = (): unknown => ask("session/append", { session_id, message: [] });
  daemon.stdin.end();
  const ends = events.flatMap((event) => (event.type === "compaction_end" ? [event.status] : []));
  console.log(
    JSON.stringify({
      appended: appended.entry_ids.length,
      decision: appended.decision.kind,
      compacted: begun.compaction?.compacted,
      first_role: (context.messages[0] as { role: string }).role,
      fits: context.tokens < 20_000,
      listed: listed.sessions.map((one) => one.session_id),
      window: state.token_usage.context_window,
      ends,
      exit_code: await ended,
    }),
  );
}

main();
