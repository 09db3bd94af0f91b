/** The addresses that a page may ask the editor to open. */

const MAX_CHARS = 2000;

/** The web address of a link, as the browser reads it; null if it is none that is ever opened. */
export function addressOf(href: string): string | null {
  if (href.length > MAX_CHARS || !/^(?:https?:\/\/|mailto:)/i.test(href)) return null;
  try {
    return new URL(href).href;
  } catch {
    return null;
  }
}
