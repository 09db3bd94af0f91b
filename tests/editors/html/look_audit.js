"use strict";
// Opens the page of an audit in Chromium, in light and in dark, and prints what was seen as JSON.
//   node look_audit.js PACKAGES CHROMIUM PAGE FOLDER-FOR-SCREENSHOTS
const path = require("path");
const [packages, executablePath, page, shots] = process.argv.slice(2);
const { chromium } = require(path.join(packages, "node_modules/playwright-core"));
const axe = path.join(packages, "node_modules/axe-core/axe.min.js");

async function looked(browser, colorScheme) {
  const context = await browser.newContext({ colorScheme, viewport: { width: 1180, height: 900 } });
  const tab = await context.newPage();
  tab.setDefaultTimeout(120_000);
  const seen = { console: [], requests: [] };
  tab.on("console", (message) => seen.console.push(message.text()));
  tab.on("pageerror", (error) => seen.console.push(String(error)));
  tab.on("dialog", (dialog) => { seen.console.push("dialog"); dialog.dismiss(); });
  tab.on("request", (request) => seen.requests.push(new URL(request.url()).protocol));
  await tab.goto("file://" + page);
  seen.title = await tab.title();
  seen.background = await tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
  seen.marks = await tab.locator("svg[role=img] circle").count();
  seen.compactions = await tab.locator("svg[role=img] line.compaction").count();
  seen.told = await tab.locator("svg[role=img] desc").textContent();
  seen.mark = await tab.evaluate(() => {
    const box = document.querySelector("svg[role=img] circle").getBoundingClientRect();
    return Math.round(box.width);
  });
  await tab.locator("summary").first().focus();
  await tab.keyboard.press("Enter");
  seen.rows = await tab.locator("details table tr").count();
  await tab.screenshot({ path: path.join(shots, `audit-${colorScheme}.png`), fullPage: true });
  // The check is put in from outside: not as an element of the page, whose policy would refuse it.
  await tab.evaluate(require("fs").readFileSync(axe, "utf8"));
  seen.axe = await tab.evaluate(async () => {
    const found = await globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa"] });
    return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
  });
  await tab.setViewportSize({ width: 320, height: 700 });
  seen.overflows = await tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  await tab.screenshot({ path: path.join(shots, `audit-narrow-${colorScheme}.png`), fullPage: true });
  await context.close();
  return seen;
}

(async () => {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const seen = { light: await looked(browser, "light"), dark: await looked(browser, "dark") };
    process.stdout.write(JSON.stringify(seen));
  } finally {
    await browser.close();
  }
})().catch((error) => { console.error(error); process.exit(1); });
