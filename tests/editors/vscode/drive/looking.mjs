// Who looks at a session takes no lock: an agent goes on with it, the editor follows; a change takes the lock.
import { Agent } from "./agent.mjs";
import { drive, saw, until } from "./workbench.mjs";

const { url, agent: given } = JSON.parse(process.env.COMPACTD_EDITOR_GIVEN);

const HELD = "Open in another program.";
const session = { session_id: "looked-at" };
const said = (words, role = "user") => ({ role, content: words });

/** A call and its result. */
const called = (id, name, given, result) => [
  { role: "assistant", content: [{ type: "tool_call", call_id: id, name, arguments: given }] },
  { role: "tool", content: [{ type: "tool_result", call_id: id, content: result }] },
];
const planned = (id, ...statuses) => called(id, "update_plan", { plan: statuses.map((status, at) => ({ step: `Step ${at + 1} of the plan`, status })) }, "Plan updated");

await drive("looking", async (open) => {
  const agent = new Agent(given);
  try {
    await agent.call("session/start", { ...session, title: "Looked at", compaction: { context_window: 12000, strategy: "extract", keep_messages: 2 } });
    const talk = Array.from({ length: 12 }, (_, at) => said(`Message ${at}. ${"so we went on and looked once more ".repeat(20)}`, at % 2 === 0 ? "user" : "assistant"));
    await agent.call("session/append", { ...session, messages: talk });
    await agent.call("session/close", session);

    const bench = await open(url);
    await bench.command("compactd: Select Session");
    await bench.pick("Looked at");
    await until("a gauge", async () => (await bench.percent()) !== null);
    await bench.command("compactd: Show Context");
    const context = await bench.frame("context");
    await context.locator(".tree .row", { hasText: "Message 0" }).waitFor();
    saw("spoken while nobody writes", await bench.spoken());
    saw("told while nobody writes", (await bench.notifications()).filter((each) => each.includes("another program")));

    saw("the agent may write while it is looked at", !(await agent.call("session/start", session)).read_only);
    await agent.call("session/append", { ...session, messages: [said("said elsewhere")] });
    const news = context.locator(".tree .row", { hasText: "said elsewhere" });
    await news.waitFor();
    saw("the new message", await news.innerText());
    // The section "Work" follows the agent from turn to turn.
    const turn = async (name, text, messages) => {
      await agent.call("session/append", { ...session, messages });
      await context.locator(".work dd", { hasText: text }).waitFor();
      saw(`${name} in the panel`, await context.locator(".work dd").allInnerTexts());
      saw(`${name} in the daemon`, (await agent.call("agent/state", { ...session, work: true })).work);
    };
    await context.locator(".work summary").click();
    await turn("first turn", "tests failed: pytest -q", [
      ...planned("p1", "completed", "in_progress"),
      ...called("c1", "bash", { command: "pytest -q" }, "FAILED tests/test_a.py::test_one - assert 1 == 2\n1 failed in 0.1s"),
    ]);
    await turn("second turn", "tests passed: pytest -q", [...planned("p2", "completed", "completed"), ...called("c2", "bash", { command: "pytest -q" }, "1 passed in 0.1s")]);
    await bench.shot("work");
    await context.locator(".work summary").click();
    await until("word of the other program", async () => (await bench.spoken()).includes(HELD));

    await bench.command("compactd: Compact Now");
    saw("process of the agent", agent.pid);
    saw("refused", await until("a refusal", async () => (await bench.notifications()).find((each) => each.includes("Close it there"))));
    await bench.shot("refused");

    await agent.call("session/close", session);
    await until("the end of the other program", async () => !(await bench.spoken()).includes(HELD));
    await bench.command("compactd: Compact Now");
    await context.locator(".tree .row.summary").waitFor();
    saw("the agent may write after the compaction", !(await agent.call("session/start", session)).read_only);
    await bench.shot("compacted");
  } finally {
    agent.end();
  }
});
