/** Elements whose words are set as text, never as markup. */

import { isOurs, type Shapes } from "../messages.ts";

export interface Given {
  readonly class?: string;
  readonly text?: string;
  readonly on?: { readonly [event: string]: (event: Event) => void };
  readonly attributes?: { readonly [name: string]: string };
}

/** An element. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, given: Given = {}, ...children: readonly Node[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (given.class) made.className = given.class;
  if (given.text !== undefined) made.textContent = given.text;
  for (const [name, value] of Object.entries(given.attributes ?? {})) made.setAttribute(name, value);
  for (const [name, act] of Object.entries(given.on ?? {})) made.addEventListener(name, act);
  made.append(...children);
  return made;
}

/** A button that says what it does. */
export function button(text: string, act: () => void, kind = ""): HTMLButtonElement {
  return el("button", { class: kind, text, on: { click: act }, attributes: { type: "button" } });
}

/** Words of others: they cannot reorder what stands beside them. */
export function words(text: string, className = ""): HTMLElement {
  return el("bdi", { class: className, text, attributes: { dir: "auto" } });
}

interface Editor {
  postMessage(message: unknown): void;
}

declare function acquireVsCodeApi(): Editor;

/** Both ways to the extension. What it cannot have said is dropped. */
export function connected<From, To extends { readonly type: string }>(shapes: Shapes<To["type"]>, take: (message: To) => void): (message: From) => void {
  const editor = acquireVsCodeApi();
  window.addEventListener("message", (event: MessageEvent<unknown>) => {
    if (event.origin !== window.origin || !isOurs(event.data, shapes)) return;
    take(event.data as To);
  });
  return (message) => editor.postMessage(message);
}

/** The messages that the page came with. */
export function firstMessages<To extends { readonly type: string }>(shapes: Shapes<To["type"]>): To[] {
  const given: unknown = JSON.parse(document.getElementById("first")?.textContent || "[]");
  return Array.isArray(given) ? given.filter((each): each is To => isOurs(each, shapes)) : [];
}

/** The page's root. */
export function root(): HTMLElement {
  const found = document.getElementById("root");
  if (found === null) throw new Error("the page has no root");
  return found;
}
