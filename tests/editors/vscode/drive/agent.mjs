// A daemon of another program, on the store that the editor's daemon has.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export class Agent {
  last = 0;

  constructor({ command, env }) {
    const [program, ...args] = command;
    this.process = spawn(program, args, { env, stdio: ["pipe", "pipe", "inherit"] });
    this.asked = new Map();
    createInterface({ input: this.process.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.asked.get(message.id)?.(message);
      this.asked.delete(message.id);
    });
  }

  get pid() {
    return this.process.pid;
  }

  /** The result of a request. */
  async call(method, params) {
    const id = ++this.last;
    const answer = new Promise((resolve) => this.asked.set(id, resolve));
    this.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    const { result, error } = await answer;
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  end() {
    this.process.kill();
  }
}
