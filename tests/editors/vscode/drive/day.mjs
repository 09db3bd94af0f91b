// A person's day: open, chat twice, watch the gauge rise, preview, compact with a focus, read the summary, search
// what was compacted, undo, redo, kill the daemon, go on.
import { readFileSync } from "node:fs";
import path from "node:path";
import { drive, logText, saw, until } from "./workbench.mjs";

const { url, folder, logs } = JSON.parse(process.env.COMPACTD_EDITOR_GIVEN);

/** The pids of the daemons that the log names, oldest first. */
const pids = () => [...new Set([...logText(logs).matchAll(/pid (\d+)/g)].map((found) => Number(found[1])))];

await drive("day", async (open) => {
  const bench = await open(url);
  saw("gauge at the start", await bench.gauge());

  await bench.command("compactd: New Chat");
  const chat = await bench.frame("chat");
  await until("a gauge", async () => (await bench.percent()) !== null);
  const input = chat.locator("textarea");
  const say = async (text) => {
    await input.fill(text);
    await input.press("Enter");
  };

  // A tool is asked for, and allowed.
  await say("Where is the cache emptied? Never touch the public API.");
  await chat.getByRole("button", { name: "Allow", exact: true }).click();
  await chat.getByText("The cache is emptied in").waitFor();
  const first = await until("the gauge after one answer", async () => ((await bench.percent()) ?? 0) > 0 && bench.percent());
  saw("gauge after the first answer", first);
  await bench.shot("1-chat");

  // An edit comes as a diff, and is accepted.
  await say("Then empty it on every write.");
  await chat.getByText("Accept this edit?").waitFor();
  await bench.page.locator(".monaco-diff-editor:visible .view-line").first().waitFor();
  await bench.shot("2-edit");
  saw("the file before it was accepted", readFileSync(path.join(folder, "loader.py"), "utf8"));
  const asking = await bench.frame("chat").catch(() => chat);
  await asking.getByRole("button", { name: "Accept" }).click();
  await asking.getByText("Done: every write empties it").waitFor();
  saw("the file after it was accepted", readFileSync(path.join(folder, "loader.py"), "utf8"));

  // A command runs after consent.
  await say("Run the tests.");
  await chat.getByText("Run this command?").waitFor();
  await chat.getByRole("button", { name: "Allow", exact: true }).click();
  await chat.getByText("All green").waitFor();
  const second = await until("the gauge to rise", async () => ((await bench.percent()) ?? 0) > first && bench.percent());
  saw("gauge after the third answer", second);
  saw("spoken", await bench.spoken());
  await bench.item.hover();
  await bench.page.waitForSelector(".monaco-hover:visible, .workbench-hover:visible");
  saw("hover", await bench.page.locator(".workbench-hover:visible, .monaco-hover:visible").first().innerText());
  await bench.shot("3-gauge");

  // The preview says what goes and what stays.
  await bench.page.mouse.move(400, 400);
  await bench.command("compactd: Compact…");
  const context = await bench.frame("context");
  await context.locator(".plan .outcome").waitFor();
  const outcome = await context.locator(".plan .outcome").innerText();
  saw("preview", outcome);
  await context.getByRole("button", { name: "Keep less" }).click();
  await until("another preview", async () => (await context.locator(".plan .outcome").innerText()) !== outcome);
  saw("preview with less kept", await context.locator(".plan .outcome").innerText());
  saw("fates", await context.locator(".tree .row .tag").allInnerTexts());
  await bench.shot("4-preview");
  await context.getByRole("button", { name: "As a diff" }).click();
  await bench.page.locator(".monaco-diff-editor:visible .view-line").first().waitFor();
  await bench.shot("5-preview-diff");
  await bench.command("View: Close Editor");
  await bench.command("compactd: Show Context");
  const again = await bench.frame("context");

  // Compacted with a focus.
  await again.locator("#focus").fill("the cache and who empties it");
  await again.getByRole("button", { name: "Compact now" }).click();
  await again.locator(".tree .row.summary").waitFor();
  const third = await until("the gauge to fall", async () => ((await bench.percent()) ?? 100) < second && bench.percent());
  saw("gauge after the compaction", third);
  saw("told", await until("the word of it", async () => /Compacted [^\n]*/.exec(await bench.statusText())?.[0]));
  await bench.shot("6-compacted");

  // The summary is read, and opens to what it stands for.
  await again.locator(".tree .row.summary").click();
  await again.locator(".detail pre").waitFor();
  saw("summary", await again.locator(".detail pre").innerText());
  await again.locator(".tree .row.original").first().waitFor();
  saw("originals behind it", await again.locator(".tree .row.original").count());
  await bench.shot("7-summary");

  // Where the work stands; a line opens its message.
  await again.locator(".work summary").click();
  saw("work", await again.locator(".work dd").allInnerTexts());
  await again.locator(".work button").first().click();
  await until("the message of the line", async () => (await again.locator(".detail h2").innerText()).startsWith("e1 "));
  await again.locator(".work summary").click();

  // By keys alone: to the first original, and read it.
  await again.locator(".tree").focus();
  await bench.page.keyboard.press("Home");
  await bench.page.keyboard.press("ArrowDown");
  await bench.page.keyboard.press("Enter");
  await until("the original by keys", async () => (await again.locator(".detail h2").innerText()).startsWith("e1 "));
  saw("read by keys", await again.locator(".detail pre").innerText());

  // What was compacted is found.
  await bench.command("compactd: Search the Session…");
  await bench.page.locator(".quick-input-widget input").fill("magpie");
  const hit = bench.page.locator(".quick-input-list .monaco-list-row", { hasText: "compacted" }).first();
  await hit.waitFor();
  saw("found", await hit.innerText());
  await bench.shot("8-search");
  await hit.click();
  const found = await bench.frame("context");
  await until("the hit", async () => (await found.locator(".detail pre").innerText()).toLowerCase().includes("magpie"));

  // Taken back, and put in force again.
  await bench.command("compactd: Undo the Last Compaction");
  saw("gauge after undo", await until("the gauge to rise", async () => ((await bench.percent()) ?? 0) > third && bench.percent()));
  await until("no summary", async () => (await found.locator(".tree .row.summary").count()) === 0);
  await bench.command("compactd: Redo the Compaction");
  saw("gauge after redo", await until("the gauge to fall", async () => ((await bench.percent()) ?? 100) < second && bench.percent()));
  await found.locator(".tree .row.summary").waitFor();

  // What it changed, side by side.
  await bench.command("compactd: Show What the Last Compaction Changed");
  await bench.page.locator(".monaco-diff-editor:visible .view-line").first().waitFor();
  await bench.shot("9-changed");

  // The daemon is killed, and the day goes on.
  const dead = pids().at(-1);
  process.kill(dead, "SIGKILL");
  await until("the new daemon", () => pids().at(-1) !== dead);
  saw("told of the restart", await until("the word of it", async () => /compactd was started again[^\n]*/.exec(await bench.statusText())?.[0]));
  saw("pop-ups of ours", (await bench.notifications()).filter((each) => /compactd|daemon|session/i.test(each)));
  saw("gauge after the restart", await until("a gauge", () => bench.percent()));
  await bench.command("compactd: Open Chat");
  const later = await bench.frame("chat");
  await later.locator("textarea").fill("What was the code word?");
  await later.locator("textarea").press("Enter");
  await later.getByText("It was the magpie, as before").waitFor();
  await bench.shot("10-goes-on");
  saw("daemons", pids().length);

  // The list in the side bar.
  await bench.page.locator('.activitybar [aria-label^="compactd"]').first().click();
  await bench.page.locator(".pane-body .monaco-list-row", { hasText: "Where is the" }).first().waitFor();
  saw("list", await bench.page.locator(".pane-body .monaco-list-row").allInnerTexts());
  await bench.shot("11-list");
  await bench.command("View: Close All Editors");
  await bench.command("compactd: Show Context");
  const last = await bench.frame("context");
  await last.locator(".tree .row.summary").click();
  await last.locator(".tree .row.original").first().waitFor();
  await last.locator(".detail pre").waitFor();
  await bench.shot("12-picture");
});
