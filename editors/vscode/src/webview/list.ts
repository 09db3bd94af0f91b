/** A tree of many rows of which only those in sight are in the page. Keys as in every tree (WAI-ARIA APG). */

import type { Row } from "../rows.ts";
import { count } from "../plain.ts";
import { el, words } from "./dom.ts";

const ROW_PX = 24;
const BEYOND = 8;
const ROLES: { readonly [role: string]: string } = { user: "user", assistant: "assistant", tool: "tool", system: "system", summary: "summary" };

export interface Acts {
  open(row: Row): void;
  expand(row: Row): void;
}

export class TreeList {
  readonly element: HTMLElement;
  private readonly sheet: HTMLElement;
  private rows: Row[] = [];
  private readonly behind = new Map<string, readonly Row[]>();
  private readonly isOpen = new Set<string>();
  /** What is shown: the rows, and the originals behind summaries that are open. */
  private shown: { row: Row; at: number; of: number }[] = [];
  private largest = 1;
  private active = 0;
  private readonly drawn = new Map<number, HTMLElement>();
  private readonly acts: Acts;

  constructor(label: string, acts: Acts) {
    this.acts = acts;
    this.sheet = el("div", { class: "sheet", attributes: { role: "presentation" } });
    this.element = el(
      "div",
      {
        class: "tree",
        attributes: { role: "tree", tabindex: "0", "aria-label": label },
        on: { scroll: () => this.draw(), keydown: (event) => this.key(event as KeyboardEvent), focus: () => this.mark() },
      },
      this.sheet,
    );
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** Replaces all rows. Summaries that were open stay open. */
  fill(rows: readonly Row[]): void {
    this.rows = [...rows];
    this.flatten();
  }

  /** More rows at the end. */
  add(rows: readonly Row[]): void {
    this.rows.push(...rows);
    this.flatten();
  }

  /** The originals behind a summary, which is opened. */
  opened(id: string, rows: readonly Row[]): void {
    this.behind.set(id, rows);
    this.isOpen.add(id);
    this.flatten();
  }

  /** Brings a row into sight; false where it is not there. */
  reveal(id: string): boolean {
    const at = this.shown.findIndex(({ row }) => row.id === id);
    if (at < 0) return false;
    this.to(at);
    return true;
  }

  private flatten(): void {
    const active = this.shown[this.active]?.row.id;
    this.shown = this.rows.flatMap((row, at) => {
      const originals = this.isOpen.has(row.id) ? (this.behind.get(row.id) ?? []) : [];
      return [
        { row, at, of: this.rows.length },
        ...originals.map((original, nth) => ({ row: original, at: nth, of: originals.length })),
      ];
    });
    this.largest = this.shown.reduce((most, { row }) => Math.max(most, row.tokens ?? 0), 1);
    const again = this.shown.findIndex(({ row }) => row.id === active);
    this.active = again < 0 ? Math.min(this.active, Math.max(0, this.shown.length - 1)) : again;
    this.sheet.style.height = `${this.shown.length * ROW_PX}px`;
    for (const row of this.drawn.values()) row.remove();
    this.drawn.clear();
    this.draw();
  }

  /** Puts the rows in sight into the page and takes the others out. */
  private draw(): void {
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW_PX) - BEYOND);
    const last = Math.min(this.shown.length, first + Math.ceil(this.element.clientHeight / ROW_PX) + 2 * BEYOND);
    for (const [at, row] of this.drawn) {
      if (at < first || at >= last) {
        row.remove();
        this.drawn.delete(at);
      }
    }
    for (let at = first; at < last; at += 1) {
      const entry = this.shown[at];
      if (entry === undefined || this.drawn.has(at)) continue;
      const made = this.row(entry.row, at, entry.at, entry.of);
      const next = [...this.drawn.keys()].filter((other) => other > at).sort((a, b) => a - b)[0];
      this.sheet.insertBefore(made, next === undefined ? null : (this.drawn.get(next) ?? null));
      this.drawn.set(at, made);
    }
    this.mark();
  }

  private row(row: Row, index: number, at: number, of: number): HTMLElement {
    const role = ROLES[row.role] ?? "other";
    const tags = [row.fate, row.pinnedBy === "person" && row.fate !== "pinned" ? "pinned" : null, row.isPruned ? "pruned" : null].filter((tag) => tag !== null);
    if (row.pinnedBy === "compaction" && row.fate === null) tags.push("carried over");
    const size = row.tokens === null ? "" : count(row.tokens);
    const made = el(
      "div",
      {
        class: `row ${role}${row.level === 2 ? " original" : ""}${row.fate ? ` ${row.fate}` : ""}`,
        attributes: {
          role: "treeitem",
          id: `row${index}`,
          "aria-level": String(row.level),
          "aria-setsize": String(of),
          "aria-posinset": String(at + 1),
          "aria-selected": "false",
          ...(row.opens === null ? {} : { "aria-expanded": String(this.isOpen.has(row.id)) }),
        },
        on: {
          click: () => {
            this.to(index, false);
            if (row.opens !== null) this.toggle(row);
            this.acts.open(row);
          },
        },
      },
      el("span", { class: "twisty", text: row.opens === null ? "" : this.isOpen.has(row.id) ? "▾" : "▸", attributes: { "aria-hidden": "true" } }),
      el("span", { class: "who", text: role }),
      words(row.line || "(nothing)", "line"),
      ...tags.map((tag) => el("span", { class: `tag ${tag.split(" ")[0] ?? ""}`, text: tag })),
      el("span", { class: "bar", attributes: { "aria-hidden": "true" } }, this.bar(row)),
      el("span", { class: "size", text: size, ...(size ? { attributes: { "aria-label": `${size} tokens` , role: "img" } } : {}) }),
    );
    made.style.top = `${index * ROW_PX}px`;
    return made;
  }

  private bar(row: Row): HTMLElement {
    const bar = el("span", { class: "fill" });
    bar.style.width = `${Math.round((100 * (row.tokens ?? 0)) / this.largest)}%`;
    return bar;
  }

  private toggle(row: Row): void {
    if (this.isOpen.delete(row.id)) this.flatten();
    else if (this.behind.has(row.id)) {
      this.isOpen.add(row.id);
      this.flatten();
    } else this.acts.expand(row);
  }

  private key(event: KeyboardEvent): void {
    const row = this.shown[this.active]?.row;
    if (row === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_PX) - 1);
    const isOpen = this.isOpen.has(row.id);
    switch (event.key) {
      case "ArrowDown":
        this.to(this.active + 1);
        break;
      case "ArrowUp":
        this.to(this.active - 1);
        break;
      case "PageDown":
        this.to(this.active + page);
        break;
      case "PageUp":
        this.to(this.active - page);
        break;
      case "Home":
        this.to(0);
        break;
      case "End":
        this.to(this.shown.length - 1);
        break;
      case "ArrowRight":
        if (row.opens !== null && !isOpen) this.toggle(row);
        else if (isOpen) this.to(this.active + 1);
        break;
      case "ArrowLeft":
        if (row.opens !== null && isOpen) this.toggle(row);
        else if (row.level === 2) this.to(this.shown.slice(0, this.active).findLastIndex(({ row: above }) => above.level === 1));
        break;
      case "Enter":
      case " ":
        if (row.opens !== null && !isOpen) this.toggle(row);
        this.acts.open(row);
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  private to(index: number, scrolls = true): void {
    this.active = Math.max(0, Math.min(this.shown.length - 1, index));
    if (scrolls) {
      const top = this.active * ROW_PX;
      const { scrollTop, clientHeight } = this.element;
      if (top < scrollTop) this.element.scrollTop = top;
      else if (top + ROW_PX > scrollTop + clientHeight) this.element.scrollTop = top + ROW_PX - clientHeight;
    }
    this.draw();
  }

  private mark(): void {
    for (const [at, row] of this.drawn) {
      row.classList.toggle("active", at === this.active);
      row.setAttribute("aria-selected", String(at === this.active));
    }
    if (this.drawn.has(this.active)) this.element.setAttribute("aria-activedescendant", `row${this.active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }
}
