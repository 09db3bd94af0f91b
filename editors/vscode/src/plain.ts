/** Text from elsewhere, made safe to look at: it cannot hide, reorder or break what stands beside it. */

// Unicode's bidirectional controls (UAX 9) and the invisible ones that have no business in a line.
const UNSEEN = /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u061c\u180e]/g;
// C0 but tab and newline, DEL, C1.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** The text with its lines; controls are shown by their code points. */
export function plain(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(CONTROLS, shown)
    .replace(UNSEEN, shown);
}

/** The text as one line of at most `most` code points. */
export function oneLine(text: string, most = 160): string {
  const line = plain(text.slice(0, most * 8)).replace(/\s+/g, " ").trim();
  const points = Array.from(line);
  return points.length > most ? `${points.slice(0, most - 1).join("").trimEnd()}…` : line;
}

/** 82140 as "82,140". */
export function count(tokens: number): string {
  return Math.round(tokens).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** 82140 as "82k", for where room is short. */
export function brief(tokens: number): string {
  if (tokens < 1000) return String(Math.round(tokens));
  if (tokens < 9950) return `${(tokens / 1000).toFixed(1)}k`;
  return tokens < 999_500 ? `${Math.round(tokens / 1000)}k` : `${(tokens / 1_000_000).toFixed(1)}M`;
}

/** "1 message", "2 messages". */
export function plural(number: number, thing: string): string {
  return `${count(number)} ${thing}${number === 1 ? "" : "s"}`;
}

/** A value as JSON that cannot end the HTML element that it is in. */
export function inScript(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}

function shown(char: string): string {
  return `⟨${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}
