/** Many calls become one: `run` is called once, `delayMs` after the first of them. */
export class Coalescer {
  private timer: ReturnType<typeof setTimeout> | null = null;
  private readonly run: () => void;
  private readonly delayMs: number;

  constructor(run: () => void, delayMs: number) {
    this.run = run;
    this.delayMs = delayMs;
  }

  /** Asks for a run. */
  ask(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.run();
    }, this.delayMs);
  }

  /** No run that was asked for happens any more. */
  dispose(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}
