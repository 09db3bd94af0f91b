"use strict";
// Opens a page in Chromium, in light and in dark, uses it as a person does, and prints what was seen as JSON.
//   node look.js PACKAGES CHROMIUM PAGE FOLDER-FOR-SCREENSHOTS
const path = require("path");
const [packages, executablePath, page, shots] = process.argv.slice(2);
const { chromium } = require(path.join(packages, "node_modules/playwright-core"));
const axe = path.join(packages, "node_modules/axe-core/axe.min.js");

async function told(tab) {
  const tip = tab.locator("#tip");
  if (await tip.isHidden()) return null;
  return tip.evaluate((element) => [...element.children].map((line) => line.textContent));
}

// What a scroll does comes with the next frame.
async function frames(tab) {
  await tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

async function reach(tab, selector) {
  await tab.locator(selector).scrollIntoViewIfNeeded();
  await frames(tab);
}

async function hover(tab, selector, x = 0.5, y = 0.5) {
  const box = await tab.locator(selector).first().boundingBox();
  await tab.mouse.move(box.x + box.width * x, box.y + box.height * y);
  return told(tab);
}

async function looked(browser, colorScheme) {
  const context = await browser.newContext({ colorScheme, viewport: { width: 1180, height: 900 } });
  const tab = await context.newPage();
  tab.setDefaultTimeout(120_000);
  const seen = { console: [], violations: [], requests: [] };
  tab.on("console", (message) => seen.console.push(message.text()));
  tab.on("pageerror", (error) => seen.console.push(String(error)));
  tab.on("dialog", (dialog) => { seen.console.push("dialog"); dialog.dismiss(); });
  tab.on("request", (request) => seen.requests.push(new URL(request.url()).protocol));
  await tab.addInitScript(() => {
    globalThis.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(event.violatedDirective));
  });
  await tab.goto("file://" + page);
  seen.title = await tab.title();
  seen.heading = await tab.locator("h1").textContent();
  seen.background = await tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
  seen.bar = await hover(tab, "#bar svg rect.results");
  await reach(tab, "#growth");
  seen.first = await hover(tab, "#growth svg [role=slider]", 0.01);
  seen.last = await hover(tab, "#growth svg [role=slider]", 0.99);
  seen.covered = await tab.evaluate(() => {
    const tip = document.getElementById("tip").getBoundingClientRect();
    const dot = document.querySelector("#growth .dot").getBoundingClientRect();
    return tip.left < dot.right && dot.left < tip.right && tip.top < dot.bottom && dot.top < tip.bottom;
  });
  await tab.screenshot({ path: path.join(shots, `hovered-${colorScheme}.png`) });
  seen.compaction = await hover(tab, "#growth svg .cut rect");
  await reach(tab, "#entries");
  seen.entry = await hover(tab, "#entries svg .tile");
  await reach(tab, "#spent");
  seen.spent = await hover(tab, "#spent svg [role=slider]", 0.99);
  await tab.mouse.move(2, 2);
  seen.nothing = await told(tab);

  await tab.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await frames(tab);
  await tab.locator("#growth svg [role=slider]").focus();
  await tab.keyboard.press("End");
  await tab.keyboard.press("ArrowLeft");
  await frames(tab);
  seen.keyed = await told(tab);
  seen.spoken = await tab.locator("#growth svg [role=slider]").getAttribute("aria-valuetext");
  await tab.keyboard.press("Escape");
  seen.escaped = await told(tab);
  seen.tabbed = [];
  await tab.locator("#bar svg rect[tabindex]").first().focus();
  for (let n = 0; n < 40; n++) {
    const place = await tab.evaluate(() => document.activeElement.closest(".plot, summary")?.id ?? document.activeElement.tagName);
    if (seen.tabbed[seen.tabbed.length - 1] !== place) seen.tabbed.push(place);
    await tab.keyboard.press("Tab");
  }
  await tab.locator("#entries svg .tile[tabindex='0']").focus();
  await tab.keyboard.press("ArrowRight");
  seen.second = await tab.evaluate(() => document.activeElement.getAttribute("aria-label"));

  await tab.evaluate(() => document.activeElement.blur());
  await tab.evaluate(() => scrollTo(0, 0));
  await tab.screenshot({ path: path.join(shots, `page-${colorScheme}.png`), fullPage: true });
  seen.violations = await tab.evaluate(() => globalThis.violations);
  // The check is put in from outside: not as an element of the page, whose policy would refuse it.
  await tab.evaluate(require("fs").readFileSync(axe, "utf8"));
  seen.axe = await tab.evaluate(async () => {
    const found = await globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa"] });
    return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
  });
  await tab.setViewportSize({ width: 320, height: 700 });
  await tab.waitForFunction(() => document.querySelector("#growth svg").viewBox.baseVal.width < 320);
  seen.overflows = await tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  await tab.screenshot({ path: path.join(shots, `narrow-${colorScheme}.png`), fullPage: true });
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
