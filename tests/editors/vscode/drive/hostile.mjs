// Titles, messages and answers that want to be more than text. Nothing of them runs, nothing of them is hidden.
// Then the accessibility checker looks at both pages, in the light theme and in the dark one.
import { writeFileSync } from "node:fs";
import { axeSource, drive, saw, until } from "./workbench.mjs";

const { url, file, settings } = JSON.parse(process.env.COMPACTD_EDITOR_GIVEN);

await drive("hostile", async (open) => {
  const reports = [];
  const bench = await open(url, {
    before: async (_, page) => {
      page.on("console", (message) => {
        if (/content security policy/i.test(message.text())) reports.push(message.text());
      });
      page.on("dialog", (dialog) => {
        reports.push(`dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
    },
  });

  // As from the explorer: the file's own menu.
  const context = await bench.openSession(file);
  await context.locator(".tree .row").first().waitFor();
  saw("title", await context.locator("h1").innerText());
  saw("lines", await context.locator(".tree .row .line").allInnerTexts());
  for (const row of await context.locator(".tree .row").all()) await row.click();
  await until("the last entry", async () => (await context.locator(".detail h2").allInnerTexts())[0]?.startsWith("e4 "));
  saw("entry", await context.locator(".detail pre").innerText());
  // It stays open for the accessibility checker.
  await context.locator(".work summary").click();
  saw("work", await context.locator(".work dd").allInnerTexts());
  await bench.shot("1-context");
  const foreign = (frame) => frame.evaluate(() => ({
    ran: window.ran ?? [],
    scripts: [...document.scripts].map((script) => script.nonce !== "" || script.getAttribute("nonce") !== null),
    elements: document.querySelectorAll("#root img, #root iframe, #root a[href], #root svg, #root style, #root object, #root form").length,
  }));
  saw("context", await foreign(context));

  // A message that is not ours is dropped, whoever sends it.
  const rows = await context.locator(".tree .row").count();
  await context.evaluate(() => {
    window.postMessage({ type: "entry", id: "x" }, "*");
    window.postMessage({ type: "<img src=x onerror=alert(1)>" }, "*");
    window.postMessage(null, "*");
  });
  saw("rows after foreign messages", (await context.locator(".tree .row").count()) === rows);
  saw("text after foreign messages", await context.locator(".detail pre").innerText());
  // Nothing of the session tried anything that the policy had to stop.
  saw("reports before", [...reports]);
  // What the page's policy allows: a script without its nonce does not run, nothing is fetched.
  saw("injected", await context.evaluate(async () => {
    const violations = [];
    document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
    const script = document.createElement("script");
    script.textContent = "window.ran = ['injected']";
    document.body.append(script);
    const image = new Image();
    const loaded = await new Promise((resolve) => {
      image.onload = () => resolve(true);
      image.onerror = () => resolve(false);
      image.src = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
    });
    const fetched = await fetch("http://127.0.0.1:9/").then(() => true, () => false);
    script.remove();
    return { ran: window.ran ?? [], loaded, fetched, violations };
  }));

  await bench.command("compactd: Open Chat");
  const chat = await bench.frame("chat");
  await chat.locator(".said.user").first().waitFor();
  saw("said", await chat.locator(".said.user .text").allInnerTexts());
  await chat.locator("textarea").fill("<b>bold</b> ‮reversed");
  await chat.locator("textarea").press("Enter");
  await chat.getByText("onerror=alert", { exact: false }).last().waitFor();
  await until("the whole answer", async () => (await chat.locator(".said.assistant.writing").count()) === 0);
  saw("chat", await foreign(chat));
  await bench.shot("2-chat");

  // Markdown is drawn, and what it draws asks before it leaves the page.
  await bench.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const first = await chat.locator(".said.assistant").count();
  await chat.locator("textarea").fill("What did you find?");
  await chat.locator("textarea").press("Enter");
  const answer = chat.locator(".said.assistant").nth(first);
  await until("the whole Markdown", async () => (await answer.count()) === 1 && (await answer.locator(".code + p").count()) === 1 && (await chat.locator(".said.assistant.writing").count()) === 0);
  saw("drawn", await answer.evaluate((said) => [...said.children].map((each) => `${each.localName}: ${each.innerText.replace(/\s+/g, " ")}`)));
  saw("inside of it", await answer.evaluate((said) => [...new Set([...said.querySelectorAll("*")].map((each) => each.localName))].sort()));
  await answer.getByRole("button", { name: "Copy this code (python)" }).click();
  await answer.getByRole("button", { name: "Copied this code (python)" }).waitFor();
  saw("copied", await until("the copy", () => bench.page.evaluate(() => navigator.clipboard.readText())));
  const pages = bench.page.context().pages().length;
  await answer.getByRole("link", { name: "the manual" }).click();
  const dialog = bench.page.locator(".monaco-dialog-box");
  await dialog.getByText("Open this address?").waitFor();
  saw("asked of a link", await dialog.locator(".dialog-message-container").innerText());
  await bench.shot("2-link");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await dialog.waitFor({ state: "hidden" });
  saw("pages opened", bench.page.context().pages().length - pages);
  saw("chat with Markdown", await foreign(chat));

  await bench.page.locator('.activitybar [aria-label^="compactd"]').first().click();
  const listed = bench.page.locator(".pane-body .monaco-list-row").first();
  await listed.waitFor();
  saw("list", await listed.innerText());
  saw("reports", reports.length);

  // axe is put in by the browser's own hand, past the page's policy.
  const checked = async (theme) => {
    for (const kind of ["chat", "context"]) {
      await bench.command(kind === "chat" ? "compactd: Open Chat" : "compactd: Show Context");
      const looked = await bench.frame(kind);
      await until(`the ${theme} theme`, () => looked.evaluate((name) => document.body.classList.contains(`vscode-${name}`), theme));
      await looked.evaluate(axeSource);
      const found = await looked.evaluate(async () => {
        const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
        return violations.map(({ id, impact, nodes }) => ({ id, impact, where: nodes.map((node) => node.target.join(" ")).slice(0, 3) }));
      });
      saw(`axe in ${kind}, ${theme}`, found);
    }
    await bench.shot(`3-${theme}`);
  };
  await checked("light");
  writeFileSync(settings, JSON.stringify({ "workbench.colorTheme": "Default Dark Modern" }));
  await checked("dark");
});
