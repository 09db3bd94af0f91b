// The editor in a browser, as a person has it: keys, clicks, and what is on the screen.
// Environment: COMPACTD_EDITOR_MODULES (folder with node_modules), COMPACTD_EDITOR_SHOTS, COMPACTD_CHROMIUM.
import { createRequire } from "node:module";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";

const require = createRequire(path.join(process.env.COMPACTD_EDITOR_MODULES, "package.json"));
const { chromium } = require("playwright-core");
export const axeSource = require("axe-core").source;

const PATIENCE = 120_000;
const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--force-color-profile=srgb",
];

/** One thing that was seen; the test reads these lines. */
export function saw(name, value = true) {
  process.stdout.write(`${JSON.stringify({ saw: name, value })}\n`);
}

/** Runs `play` with a browser. Whatever goes wrong leaves a picture and an exit code. */
export async function drive(name, play) {
  const browser = await chromium.launch({
    executablePath: process.env.COMPACTD_CHROMIUM ?? CHROMIUM.find((each) => existsSync(each)),
    args: FLAGS,
  });
  const pages = [];
  const open = async (url, options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    const page = await context.newPage();
    pages.push(page);
    page.setDefaultTimeout(PATIENCE);
    const workbench = new Workbench(page, name);
    if (options.before) await options.before(context, page, workbench);
    await page.goto(url, { timeout: PATIENCE });
    await workbench.ready();
    return workbench;
  };
  try {
    await play(open);
  } catch (error) {
    for (const [at, page] of pages.entries()) {
      await page.screenshot({ path: shot(`${name}-failed-${at}`) }).catch(() => undefined);
    }
    process.stderr.write(`${error.stack ?? error}\n`);
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
}

function shot(name) {
  const folder = process.env.COMPACTD_EDITOR_SHOTS;
  mkdirSync(folder, { recursive: true });
  return path.join(folder, `${name}.png`);
}

/** What the extension logged in every window of this server. */
export function logText(folder) {
  if (!existsSync(folder)) return "";
  return readdirSync(folder, { recursive: true })
    .filter((each) => each.endsWith("compactd.log"))
    .map((each) => readFileSync(path.join(folder, each), "utf8"))
    .join("\n");
}

/** Waits until `ask` gives something that is not false; its value. */
export async function until(what, ask, patience = PATIENCE) {
  const end = Date.now() + patience;
  for (;;) {
    const found = await ask();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

export class Workbench {
  constructor(page, name) {
    this.page = page;
    this.name = name;
    this.count = 0;
  }

  /** A picture of the whole window, kept. */
  async shot(name) {
    await this.page.screenshot({ path: shot(`${this.name}-${name}`) });
  }

  get item() {
    return this.page.locator('[id="compactd.compactd.gauge"]');
  }

  /** What the gauge says. */
  async gauge() {
    return (await this.item.innerText()).replace(/\s+/g, " ").trim();
  }

  /** What a screen reader is told of the gauge. */
  async spoken() {
    return (await this.item.locator("a").first().getAttribute("aria-label")) ?? "";
  }

  /** The gauge's percentage; null where it shows none. */
  async percent() {
    const found = /(\d+) %/.exec(await this.gauge());
    return found ? Number(found[1]) : null;
  }

  /** Runs a command by its title. */
  async command(title) {
    const input = this.page.locator(".quick-input-widget input");
    await until(`the command “${title}”`, async () => {
      try {
        await this.page.keyboard.press("F1");
        await input.waitFor({ state: "visible", timeout: 10_000 });
        await input.fill(`>${title}`, { timeout: 10_000 });
        await this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().click({ timeout: 10_000 });
        // A mouse that rests on the list that opens next shows a tooltip, which covers the row below.
        await this.page.mouse.move(640, 790);
        return true;
      } catch {
        await this.page.keyboard.press("Escape");
        return false;
      }
    });
  }

  /** Chooses from the open list by keyboard. A click can fail: a tooltip may cover the row below the mouse. */
  async pick(text) {
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first().waitFor();
    await this.page.locator(".quick-input-widget input").fill(text);
    await this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: text }).waitFor();
    await this.page.keyboard.press("Enter");
  }

  /** Waits until the window and the extension are there. */
  async ready() {
    await this.page.waitForSelector(".monaco-workbench");
    await this.page.waitForSelector('[id="compactd.compactd.gauge"]');
  }

  /** Loads the window a second time and waits until the explorer shows these folders of its workspace.
   *
   * The first load may never show them: the editor starts with its cache, which is empty, and forgets the file's
   * folders if they arrive before its workspace is made (`updateWorkspaceAndInitializeConfiguration` of
   * code-server's WorkspaceService marks it complete). The second load has them in its cache. */
  async folders(...names) {
    await this.page.reload({ timeout: PATIENCE });
    await this.ready();
    for (const name of names) {
      await this.page.locator(".explorer-folders-view .monaco-list-row", { hasText: name }).first().waitFor();
    }
  }

  /** Opens a session file by its menu in the explorer; the frame of its context. A menu that was clicked while it
   * opened does nothing: then once more, as a person would. */
  openSession(file) {
    return until(`the session of ${file}`, async () => {
      try {
        const entry = this.page.locator(".explorer-folders-view .monaco-list-row", { hasText: file });
        await entry.click({ button: "right", timeout: 15_000 });
        await this.page.locator(".monaco-menu .action-item", { hasText: "Open Another Agent" }).click({ timeout: 6_000, delay: 50 });
        return await this.frame("context", 30_000);
      } catch {
        await this.page.keyboard.press("Escape");
        return null;
      }
    });
  }

  /** The frame of a page of ours, `context` or `chat`, that is in sight. */
  frame(kind, patience = PATIENCE) {
    return until(`the ${kind} page`, async () => {
      for (const frame of this.page.frames()) {
        try {
          const isIt = await frame.evaluate((name) => document.body?.classList.contains(name) && document.visibilityState === "visible" && innerHeight > 0 && document.getElementById("root") !== null, kind);
          if (isIt && (await visible(frame))) return frame;
        } catch {
          // It went away meanwhile.
        }
      }
      return null;
    }, patience);
  }

  /** Text in the status bar's message place. */
  statusText() {
    return this.page.locator(".part.statusbar").innerText();
  }

  /** The notifications in sight. */
  async notifications() {
    return this.page.locator(".notifications-toasts .notification-list-item-message").allInnerTexts();
  }
}

async function visible(frame) {
  const element = await frame.frameElement();
  const outer = frame.parentFrame();
  if (!(await element.isVisible())) return false;
  return outer === null || outer.parentFrame() === null ? true : (await outer.frameElement()).isVisible();
}
