/** The tree of a Markdown text as elements. Words are set as text, never as markup. */

import { GrowingText, blocksOf, type Block, type Cell, type Inline } from "../markdown.ts";
import { button, el } from "./dom.ts";

export interface Acts {
  copy(text: string): void;
  /** Asks the person whether to open an address. */
  open(href: string): void;
}

const COPIED_MS = 1500;
const TAGS = { strong: "strong", emphasis: "em", struck: "s" } as const;

/** The elements of a whole text. */
export function markdown(text: string, acts: Acts): HTMLElement[] {
  return blocksOf(text).map((block) => blockElement(block, acts));
}

/** An answer that is being written: what is settled stays as it is, the block at the end is drawn again. */
export class GrowingMarkdown {
  private readonly growing = new GrowingText();
  private open: { readonly block: Block; readonly element: HTMLElement }[] = [];
  private readonly parent: HTMLElement;
  private readonly acts: Acts;

  constructor(parent: HTMLElement, acts: Acts) {
    this.parent = parent;
    this.acts = acts;
  }

  add(text: string): void {
    const { settled, open } = this.growing.add(text);
    const before = this.open;
    this.open = [...settled, ...open].map((block, at) => {
      const old = before[at];
      if (old !== undefined && grew(old.element, old.block, block)) return { block, element: old.element };
      const element = blockElement(block, this.acts);
      if (old === undefined) this.parent.append(element);
      else old.element.replaceWith(element);
      return { block, element };
    });
    for (const gone of before.slice(this.open.length)) gone.element.remove();
    this.open.splice(0, settled.length);
  }
}

/** Whether an element shows the new block, at most with some text added to its code. A page of code is not drawn again. */
function grew(element: HTMLElement, old: Block, block: Block): boolean {
  if (old.kind === "code" && block.kind === "code" && old.language === block.language && block.text.startsWith(old.text)) {
    const fresh = block.text.slice(old.text.length);
    if (fresh !== "") element.querySelector("code")?.append(fresh);
    return true;
  }
  return JSON.stringify(old) === JSON.stringify(block);
}

function blockElement(block: Block, acts: Acts): HTMLElement {
  switch (block.kind) {
    case "paragraph":
      return el("p", AUTO, ...inlineNodes(block.children, acts));
    case "heading":
      // The page's own headings are above those of an answer.
      return el(`h${Math.min(6, block.level + 1)}` as "h2", AUTO, ...inlineNodes(block.children, acts));
    case "code":
      return codeElement(block.language, block.text, acts);
    case "quote":
      return el("blockquote", {}, ...block.blocks.map((each) => blockElement(each, acts)));
    case "list":
      return listElement(block, acts);
    case "table":
      return tableElement(block, acts);
    case "rule":
      return el("hr");
  }
}

const AUTO = { attributes: { dir: "auto" } } as const;

function listElement(list: Extract<Block, { kind: "list" }>, acts: Acts): HTMLElement {
  const items = list.items.map(({ checked, blocks }) => {
    const item = el("li", { ...AUTO, class: checked === null ? "" : "task" });
    if (checked !== null) item.append(el("span", { class: "box", text: checked ? "☑" : "☐", attributes: { role: "img", "aria-label": checked ? "done" : "open" } }));
    item.append(...blocks.map((each) => blockElement(each, acts)));
    return item;
  });
  return list.start === null ? el("ul", {}, ...items) : el("ol", { attributes: { start: String(list.start) } }, ...items);
}

function tableElement(table: Extract<Block, { kind: "table" }>, acts: Acts): HTMLElement {
  const row = (cells: readonly Cell[], tag: "th" | "td") =>
    el("tr", {}, ...cells.map((cell, at) => el(tag, { class: table.align[at] ?? "", ...AUTO }, ...inlineNodes(cell, acts))));
  return el(
    "div",
    { class: "wide", attributes: { tabindex: "0", role: "region", "aria-label": "Table" } },
    el("table", {}, el("thead", {}, row(table.head, "th")), el("tbody", {}, ...table.rows.map((cells) => row(cells, "td")))),
  );
}

function codeElement(language: string, text: string, acts: Acts): HTMLElement {
  const code = el("code", { text });
  const copy = button("Copy", () => {
    acts.copy(code.textContent ?? "");
    name("Copied");
    setTimeout(() => name("Copy"), COPIED_MS);
  });
  /** Names the button: what is shown is the beginning of what a screen reader says. */
  const name = (shown: string): void => {
    copy.textContent = shown;
    copy.setAttribute("aria-label", language === "" ? `${shown} this code` : `${shown} this code (${language})`);
  };
  name("Copy");
  return el(
    "div",
    { class: "code" },
    el("div", { class: "bar" }, el("span", { class: "language", text: language }), copy),
    el("pre", { attributes: { tabindex: "0", role: "region", "aria-label": language === "" ? "Code" : `Code (${language})` } }, code),
  );
}

function inlineNodes(inlines: readonly Inline[], acts: Acts): Node[] {
  return inlines.map((inline) => inlineNode(inline, acts));
}

/** It has no `href`: the editor opens what has one without a question if the workspace is trusted. */
function linkElement(href: string, children: readonly Inline[], acts: Acts): HTMLElement {
  const made = el("a", { attributes: { role: "link", tabindex: "0", title: href } }, ...inlineNodes(children, acts));
  made.addEventListener("click", () => acts.open(href));
  made.addEventListener("keydown", (event) => {
    if (event.key === "Enter") acts.open(href);
  });
  return made;
}

function inlineNode(inline: Inline, acts: Acts): Node {
  switch (inline.kind) {
    case "text":
      return document.createTextNode(inline.text);
    case "code":
      return el("code", { text: inline.text });
    case "break":
      return el("br");
    case "link":
      return linkElement(inline.href, inline.children, acts);
    default:
      return el(TAGS[inline.kind], {}, ...inlineNodes(inline.children, acts));
  }
}
