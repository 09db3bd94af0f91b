/** The page of a conversation. */

import { CHAT_SHAPES, type Asked, type ChatDeed, type ChatHead, type FromChat, type Line, type ToChat } from "../messages.ts";
import { count } from "../plain.ts";
import { button, connected, el, firstMessages, root, words } from "./dom.ts";
import { GrowingMarkdown, markdown } from "./markdown.ts";

const NEAR_END_PX = 60;
/** Characters after which reasoning continues in a new element, until the whole answer is there. */
const LONG_LINE = 4000;

const log = el("div", { class: "log", attributes: { role: "log", "aria-label": "Conversation", tabindex: "0" } });
const title = words("", "title");
const number = el("span", { class: "gauge" });
const model = words("", "model");
const why = el("p", { class: "why", attributes: { role: "status" } });
const input = el("textarea", { attributes: { rows: "3", "aria-label": "Message", placeholder: "Ask. Enter sends, Shift+Enter makes a new line." } });
const sendButton = button("Send", () => prompt(), "primary");
const stopButton = button("Stop", () => send({ type: "do", what: "stop" }));

/** The answer that is being written; `answer` is null while the model reasons. */
let writing: { element: HTMLElement; answer: GrowingMarkdown | null; fresh: string } | null = null;
let drawsSoon = false;
const asks = new Map<string, HTMLElement>();
/** By id, the lines that may be moved or marked. */
const lines = new Map<string, HTMLElement>();
const acts = { copy: (text: string) => send({ type: "copy", text }), open: (href: string) => send({ type: "link", href }) };

const send = connected<FromChat, ToChat>(CHAT_SHAPES, take);

function take(message: ToChat): void {
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END_PX;
  switch (message.type) {
    case "head":
      showHead(message.head);
      break;
    case "lines":
      lines.clear();
      // Questions that wait for the person stay.
      log.replaceChildren(...earlierButton(message.earlier), ...message.lines.map(lineElement), ...asks.values());
      writing = null;
      break;
    case "line":
      lines.get(message.line.id)?.remove();
      log.append(lineElement(message.line));
      break;
    case "gone":
      lines.get(message.id)?.remove();
      break;
    case "mark":
      lines.get(message.id)?.querySelector(".mark")?.replaceChildren(message.mark);
      break;
    case "delta":
      wrote(message.thinking, message.text);
      return;
    case "end":
      ended(message.line, message.stays);
      break;
    case "ask":
      log.append(askElement(message.asked));
      break;
    case "asked":
      answered(message.call, message.answer);
  }
  if (isAtEnd || message.type === "lines" || message.type === "ask") log.scrollTop = log.scrollHeight;
}

function showHead(head: ChatHead): void {
  title.textContent = head.title;
  number.textContent = head.gauge;
  model.textContent = head.model;
  why.textContent = head.why;
  why.hidden = head.why === "";
  input.disabled = sendButton.disabled = !head.canWrite;
  stopButton.hidden = !head.running;
}

function prompt(): void {
  const text = input.value;
  if (text.trim() === "" || input.disabled) return;
  send({ type: "prompt", text });
  input.value = "";
  log.scrollTop = log.scrollHeight;
}

/** Text of the answer: drawn once a frame, however often it comes, and only what is new. */
function wrote(thinking: string, text: string): void {
  if (writing === null) {
    writing = { element: el("div", { class: "said assistant writing" }), answer: null, fresh: "" };
    log.append(writing.element);
  }
  if (text !== "" && writing.answer === null) {
    // The answer begins: the reasoning before it gives way.
    writing.answer = new GrowingMarkdown(writing.element, acts);
    writing.fresh = "";
    writing.element.replaceChildren(who("assistant"));
  }
  writing.fresh += writing.answer === null ? thinking : text;
  writing.element.classList.toggle("thinking", writing.answer === null);
  if (drawsSoon) return;
  drawsSoon = true;
  requestAnimationFrame(() => {
    drawsSoon = false;
    if (writing === null || writing.fresh === "") return;
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_END_PX;
    if (writing.answer === null) grow(writing.element, writing.fresh);
    else writing.answer.add(writing.fresh);
    writing.fresh = "";
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  });
}

/** Appends text by lines, so that the browser lays out no more than the last one again. */
function grow(element: HTMLElement, fresh: string): void {
  fresh.split("\n").forEach((line, at) => {
    const last = element.lastElementChild;
    if (last !== null && at === 0 && (last.textContent?.length ?? 0) < LONG_LINE) last.append(line);
    else element.append(el("div", { class: "text", text: line, attributes: { dir: "auto" } }));
  });
}

function ended(line: Line | null, stays: boolean): void {
  const made = line === null ? null : lineElement(line);
  if (writing !== null) {
    if (made) writing.element.replaceWith(made);
    else if (writing.answer === null || !stays) writing.element.remove();
    else writing.element.classList.remove("writing");
  } else if (made) log.append(made);
  writing = null;
}

function lineElement(line: Line): HTMLElement {
  const made = elementOf(line);
  lines.set(line.id, made);
  return made;
}

function elementOf(line: Line): HTMLElement {
  if (line.role === "rule") {
    return el("div", { class: "rule" }, words(line.text), words(line.mark ?? "", "mark"), button("undo", () => deed("undo"), "link"), button("open", () => deed("context"), "link"));
  }
  const made = el("div", { class: `said ${line.role}` });
  if (line.role === "user" || line.role === "assistant") made.append(who(line.role, line.who));
  // What the person typed is shown as it was typed.
  made.append(...(line.role === "assistant" ? markdown(line.text, acts) : [el("div", { class: "text", text: line.text, attributes: { dir: "auto" } })]));
  return made;
}

function who(role: "user" | "assistant", name = role === "user" ? "You" : "Model"): HTMLElement {
  return el("span", { class: "who", text: name });
}

function askElement(asked: Asked): HTMLElement {
  const answer = (text: string, value: Extract<FromChat, { type: "answer" }>["answer"], kind = "") =>
    button(text, () => send({ type: "answer", call: asked.call, answer: value }), kind);
  const allow = answer(asked.yes, "once", "primary");
  const made = el(
    "section",
    { class: "ask", attributes: { "aria-label": asked.title } },
    el("p", { text: asked.title }),
    el("pre", { text: asked.detail, attributes: { tabindex: "0" } }),
    el("div", { class: "toolbar" }, allow, ...(asked.canRemember ? [answer("Allow reading in this session", "session")] : []), answer(asked.no, "no")),
  );
  asks.set(asked.call, made);
  // Not the button that allows: an Enter that was on its way must not say yes.
  made.tabIndex = -1;
  requestAnimationFrame(() => made.focus());
  return made;
}

function answered(call: string, answer: string): void {
  const made = asks.get(call);
  if (made === undefined) return;
  asks.delete(call);
  made.querySelector(".toolbar")?.replaceWith(el("p", { class: "answer", text: answer }));
  input.focus();
}

function earlierButton(earlier: number): HTMLElement[] {
  return earlier === 0 ? [] : [button(`Show earlier (${count(earlier)} lines)`, () => deed("earlier"), "link")];
}

function deed(what: ChatDeed): void {
  send({ type: "do", what });
}

input.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  prompt();
});
stopButton.hidden = why.hidden = true;
root().append(
  el("header", { class: "head" }, el("h1", {}, title)),
  log,
  el(
    "footer",
    {},
    why,
    input,
    el("div", { class: "toolbar" }, sendButton, stopButton, button("Compact…", () => deed("compact")), button("Context", () => deed("context")), el("span", { class: "where" }, model, number)),
  ),
);
for (const message of firstMessages<ToChat>(CHAT_SHAPES)) take(message);
send({ type: "ready" });
input.focus();
