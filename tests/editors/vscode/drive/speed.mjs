// A long context, and typing while a thousand events a second come.
import { drive, logText, saw, until } from "./workbench.mjs";

const { long, streaming, file, logs } = JSON.parse(process.env.COMPACTD_EDITOR_GIVEN);
const KEYS = 40;

/** Milliseconds from a key's event to the frame in which its letter is on the screen, for each of some keys. */
async function typed(bench) {
  const { page } = bench;
  await page.evaluate(() => {
    const at = [];
    window.keyTimes = at;
    const area = document.querySelector(".editor-instance .view-lines");
    addEventListener("keydown", (event) => {
      const begun = event.timeStamp;
      const seen = new MutationObserver(() => {
        seen.disconnect();
        requestAnimationFrame(() => at.push(performance.now() - begun));
      });
      seen.observe(area, { childList: true, subtree: true, characterData: true });
    }, { capture: true });
  });
  for (let key = 0; key < KEYS; key += 1) {
    await page.keyboard.press("x");
    await page.waitForTimeout(30);
  }
  return page.evaluate(() => window.keyTimes.splice(0));
}

/** Seconds of processor time that the window's main thread has worked. */
async function worked(session) {
  const { metrics } = await session.send("Performance.getMetrics");
  const at = (name) => metrics.find((each) => each.name === name).value;
  return { at: Date.now(), busy: at("TaskDuration") };
}

function middle(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return { keys: sorted.length, median: Math.round(sorted[Math.floor(sorted.length / 2)]), most: Math.round(sorted.at(-1)) };
}

await drive("speed", async (open) => {
  const first = await open(long);
  const context = await first.openSession(file);
  await context.locator(".tree .row").first().waitFor();
  saw("rows in the page", await context.locator(".tree .row").count());
  saw("entries that came with the page", await context.evaluate(() => {
    const messages = JSON.parse(document.getElementById("first").textContent);
    return messages.filter((each) => each.type === "rows").map((each) => each.rows.length);
  }));
  await until("all of them", async () => (await context.locator(".tree .row").first().getAttribute("aria-setsize")) === "5000");
  const begun = Date.now();
  await context.locator(".tree").focus();
  await first.page.keyboard.press("End");
  await context.getByText("Message number 4999.").first().waitFor();
  saw("to the end, ms", Date.now() - begun);
  saw("rows at the end", await context.locator(".tree .row").count());
  // An entry in the middle is found, and jumped to.
  await first.command("compactd: Search the Session…");
  await first.page.locator(".quick-input-widget input").fill("2718");
  await first.page.locator(".quick-input-list .monaco-list-row", { hasText: "Message number 2718" }).first().click();
  const found = context.locator(".tree .row.active", { hasText: "Message number 2718." });
  await found.waitFor();
  saw("the entry that was searched", await found.getAttribute("aria-posinset"));
  saw("rows around it", await context.locator(".tree .row").count());
  // Opened again: the page of before is closed first.
  await first.command("View: Close Editor");
  await first.command("compactd: Show Context");
  await until("both openings", () => (logText(logs).match(/first of 5000 entries in sight/g) ?? []).length > 1);
  saw("openings", [...logText(logs).matchAll(/first of 5000 entries in sight (.*)/g)].map((found) => found[1]));
  await first.page.context().close();

  const bench = await open(streaming);
  await bench.page.locator(".explorer-folders-view .monaco-list-row", { hasText: "loader.py" }).dblclick();
  await bench.page.locator(".editor-instance .view-line").first().waitFor();
  await bench.command("compactd: New Chat");
  let chat = await bench.frame("chat");
  await bench.command("View: Move Editor into Next Group");
  await bench.page.locator(".editor-instance .view-lines").first().waitFor();
  const code = bench.page.locator(".editor-instance .view-lines").first();
  await code.click();
  await bench.page.keyboard.press("Control+End");
  const session = await bench.page.context().newCDPSession(bench.page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  saw("idle", middle(await typed(bench)));
  chat = await bench.frame("chat");
  await chat.locator("textarea").fill("go");
  await chat.locator("textarea").press("Enter");
  await chat.getByText("word 1", { exact: false }).first().waitFor();
  await code.click();
  const before = await worked(session);
  saw("streaming", middle(await typed(bench)));
  const after = await worked(session);
  saw("main thread, percent of the time while streaming", Math.round((100_000 * (after.busy - before.busy)) / (after.at - before.at)));
  await bench.shot("streaming");
  saw("still streaming at the end", (await chat.getByText("the stream is over").count()) === 0);
  await chat.getByText("the stream is over").waitFor();
});
