/** The page of a context. */

import { CONTEXT_SHAPES, type ContextHead, type FromContext, type Plan, type ToContext } from "../messages.ts";
import { oneLine, plural } from "../plain.ts";
import type { Row } from "../rows.ts";
import type { WorkRow } from "../work.ts";
import { button, connected, el, firstMessages, root, words } from "./dom.ts";
import { TreeList } from "./list.ts";

const title = words("", "title");
const number = el("span", { class: "gauge" });
const facts = el("ul", { class: "facts" });
const progress = el("progress", { attributes: { "aria-label": "Compaction", max: "1" } });
const toolbar = el("div", { class: "toolbar", attributes: { role: "toolbar", "aria-label": "Session" } });
const banner = el("section", { class: "plan", attributes: { "aria-label": "Preview of a compaction" } });
const said = el("p", { class: "said", attributes: { role: "status" } });
const work = el("details", { class: "work" });
const detail = el("section", { class: "detail", attributes: { "aria-label": "Entry" } });
const total = el("span", { class: "total" });
let rowCount = 0;
let head: ContextHead | null = null;
let isFirst = true;

const list = new TreeList("Entries of the context", {
  open: (row) => send({ type: "open", id: row.id }),
  expand: (row) => send({ type: "expand", id: row.id }),
});

const send = connected<FromContext, ToContext>(CONTEXT_SHAPES, take);

function take(message: ToContext): void {
  switch (message.type) {
    case "head":
      showHead(message.head);
      break;
    case "rows":
      list.fill(message.rows);
      counted(message.rows.length);
      showPlan(message.plan);
      if (isFirst) requestAnimationFrame(() => send({ type: "drawn" }));
      isFirst = false;
      break;
    case "more":
      list.add(message.rows);
      counted(rowCount + message.rows.length);
      break;
    case "behind":
      list.opened(message.id, message.rows as readonly Row[]);
      break;
    case "entry":
      showEntry(message);
      break;
    case "reveal":
      list.reveal(message.id);
      break;
    case "work":
      showWork(message.brief, message.rows);
      break;
    case "said":
      said.textContent = message.text;
  }
}

function counted(rows: number): void {
  rowCount = rows;
  total.textContent = plural(rows, "entry").replace(/entrys$/, "entries");
}

function showHead(now: ContextHead): void {
  const before = head;
  head = now;
  title.textContent = now.title;
  number.textContent = now.gauge;
  facts.replaceChildren(...now.facts.map((fact) => el("li", {}, words(fact))));
  progress.hidden = now.fraction === null;
  progress.value = now.fraction ?? 0;
  if (before === null || before.canChange !== now.canChange || (before.fraction === null) !== (now.fraction === null)) showToolbar(now);
}

function showToolbar(now: ContextHead): void {
  const deed = (text: string, what: Extract<FromContext, { type: "do" }>["what"], needsChange = false) => {
    const made = button(text, () => send({ type: "do", what }));
    made.disabled = needsChange && !now.canChange;
    return made;
  };
  const compact = button("Compact…", () => send({ type: "plan", focus: "", keep: null }), "primary");
  compact.disabled = !now.canChange || now.fraction !== null;
  toolbar.replaceChildren(
    ...(now.fraction === null ? [compact] : [deed("Cancel", "cancel")]),
    deed("Undo", "undo", true),
    deed("Redo", "redo", true),
    deed("What changed", "diff"),
    deed("Search", "search"),
    deed("Chat", "chat"),
  );
}

function showPlan(plan: Plan | null): void {
  banner.hidden = plan === null;
  if (plan === null) {
    banner.replaceChildren();
    return;
  }
  const focus = el("input", { attributes: { type: "text", id: "focus", placeholder: "what the summary should look at most" } });
  focus.value = plan.focus;
  const keep = el("input", { attributes: { type: "number", id: "keep", min: "1", step: "500" } });
  keep.value = String(plan.keep);
  const kept = () => {
    const given = Number.parseInt(keep.value, 10);
    return given > 0 ? given : null;
  };
  const ask = (tokens: number | null) => send({ type: "plan", focus: focus.value, keep: tokens });
  for (const field of [focus, keep]) {
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") ask(kept());
    });
  }
  const compact = button("Compact now", () => send({ type: "compact", focus: focus.value, keep: kept() }), "primary");
  compact.disabled = !plan.canCompact || !head?.canChange;
  banner.replaceChildren(
    el("p", { class: "outcome", text: plan.words, attributes: { role: "status" } }),
    el(
      "div",
      { class: "wish" },
      el("label", { text: "Focus", attributes: { for: "focus" } }),
      focus,
      el("label", { text: "Keep word for word (tokens)", attributes: { for: "keep" } }),
      keep,
      button("Keep less", () => ask(Math.max(1, Math.round((kept() ?? plan.keep) / 2)))),
      button("Keep more", () => ask((kept() ?? plan.keep) * 2)),
      button("Preview again", () => ask(kept())),
    ),
    el(
      "div",
      { class: "toolbar" },
      compact,
      button("As a diff", () => send({ type: "do", what: "diff" })),
      button("Leave it", () => send({ type: "do", what: "unplan" })),
    ),
  );
  if (!banner.contains(document.activeElement)) compact.focus();
}

/** Where the work stands: closed until the person opens it. */
function showWork(brief: string, rows: readonly WorkRow[]): void {
  const lines = rows.map((row) => {
    const text = el("dd", {}, words(row.text, row.needsAttention ? "attention" : ""));
    if (row.note !== "") text.append(el("span", { class: "note", text: ` · ${row.note}` }));
    const { entry } = row;
    if (entry !== null) text.append(" ", button(oneLine(entry, 40), () => send({ type: "open", id: entry }), "link"));
    return row.label === "" ? [text] : [el("dt", { text: row.label }), text];
  });
  work.replaceChildren(el("summary", {}, el("b", { text: "Work" }), words(` ${brief}`)), el("dl", {}, ...lines.flat()));
}

function showEntry(entry: Extract<ToContext, { type: "entry" }>): void {
  detail.hidden = false;
  const text = el("pre", { attributes: { tabindex: "0", dir: "auto", role: "region", "aria-label": "What it says" } });
  text.textContent = entry.text;
  const pin = button(entry.isPinned ? "Unpin" : "Pin", () => send({ type: "pin", id: entry.id, pinned: !entry.isPinned }));
  pin.disabled = !head?.canChange || !/^e\d+$/.test(entry.id) || entry.title.startsWith("Summary");
  detail.replaceChildren(
    el(
      "header",
      {},
      el("h2", { text: entry.title }),
      pin,
      button("Close", () => {
        detail.hidden = true;
        list.element.focus();
      }),
    ),
    text,
  );
}

banner.hidden = detail.hidden = progress.hidden = true;
// Its line is there from the start, so that nothing moves when the answer comes.
showWork("", []);
root().append(
  el("header", { class: "head" }, el("h1", {}, title), number, total, progress, facts, toolbar),
  said,
  work,
  banner,
  list.element,
  detail,
);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !detail.hidden) {
    detail.hidden = true;
    list.element.focus();
  }
});
for (const message of firstMessages<ToContext>(CONTEXT_SHAPES)) take(message);
send({ type: "ready" });
