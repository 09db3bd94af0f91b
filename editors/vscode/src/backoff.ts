/** How long to wait before a daemon that died is started again. */

const FIRST_MS = 250;
const MOST = 5;
/** A daemon that lived that long has not failed to start. */
const LIVED_MS = 60_000;

/** The deaths in a row, and what to do after each. */
export class Backoff {
  private deaths = 0;

  /** Milliseconds to wait after a life of `lifeMs`, doubled each time; null after the fifth death in a row. */
  next(lifeMs: number): number | null {
    this.deaths = lifeMs >= LIVED_MS ? 1 : this.deaths + 1;
    return this.deaths > MOST ? null : FIRST_MS * 2 ** (this.deaths - 1);
  }

  /** The person asked for a new start. */
  reset(): void {
    this.deaths = 0;
  }
}
