/**
 * Claude Code's compaction, by compactd. Claude Code loads this module from 2.1.287 on; older versions ignore it and run
 * the hooks in `hooks.json` alone.
 *
 * The module asks the program `compactd`, which reads the transcript. Whatever fails here (no program, no answer in time,
 * an answer of another form) leaves Claude Code's own compaction as it is.
 */
import type { EngineInterface, Register, SessionCompactResult, SessionMessage } from 'claude-code'

/** compactd's answer. Everything in it is optional. */
type Answer = { summary?: unknown; keep_from?: unknown; text?: unknown; ready?: unknown }

/** How long compactd may think, in seconds; it then ends itself. A model takes longer for its summary. */
const DEADLINE_S = 5
/** After this time compactd is ended. */
const TIMEOUT_MS = 1000 * (DEADLINE_S + 1)
/** How many characters of a text compactd needs to recognise a message. */
const HEAD_CHARS = 400

/** Whether the text of each tool result is known. That of an image is not. */
const isWhole = (message: SessionMessage) => (message.toolResults ?? []).every((result) => result.text !== '')

/** Describes a message to compactd, which finds the message itself in the transcript. */
function described(message: SessionMessage, headChars: number) {
  const results = message.toolResults ?? []
  let chars = message.text.length
  for (const result of results) chars += result.text.length
  for (const use of message.toolUses) chars += use.tool.length + JSON.stringify(use.input ?? {}).length
  return {
    role: message.role,
    text: message.text.slice(0, headChars),
    calls: message.toolUses.map((use) => use.tool_use_id),
    results: results.map((result) => result.tool_use_id),
    chars,
    rigid: !isWhole(message),
  }
}

/**
 * The messages that stay, in the form in which Claude Code has to get them so that `--continue` reads them back as they
 * are now (2.1.287 to 2.1.332, run 2026-11).
 *
 * A tool result that stays by its handle still names the old call as its parent, and `--continue` then restores
 * everything before the compaction. So it is repeated without its handle. An answer without calls that stays by its
 * handle stands twice after `--continue`, so it is repeated too. Answers with calls stay by their handles: their blocks
 * and their thinking belong together.
 */
function staying(messages: readonly SessionMessage[]): SessionMessage[] {
  const found: SessionMessage[] = []
  for (let at = 0; at < messages.length; ) {
    const message = messages[at]!
    if (message.role === 'user') {
      const results = message.toolResults ?? []
      found.push(results.length ? { role: 'user', text: message.text, toolUses: [], toolResults: results } : message)
      at += 1
      continue
    }
    let end = at
    while (messages[end]?.role === 'assistant') end += 1
    const answer = messages.slice(at, end)
    const text = answer.map((one) => one.text).filter((one) => one !== '').join('\n\n')
    const hasCalls = answer.some((one) => one.toolUses.length > 0)
    if (hasCalls || text === '') found.push(...answer)
    else found.push({ role: 'assistant', text, toolUses: [] })
    at = end
  }
  return found
}

/** Asks compactd about the session. Returns its answer, or an empty object if it has none. */
async function ask(
  $: EngineInterface,
  step: 'replace' | 'begin' | 'complete',
  messages: readonly SessionMessage[],
  headChars: number,
): Promise<Answer> {
  const info = await $.session.info()
  const question = {
    hook_event_name: 'session.compact',
    session_id: await $.session.id(),
    transcript_path: info.transcriptPath,
    cwd: await $.session.cwd(),
    step,
    messages: messages.map((message) => described(message, headChars)),
  }
  const argv = ['compactd', 'hook', 'claude-code', '--deadline', String(DEADLINE_S)]
  const told = await $.process.run(argv, { cwd: '/', stdin: JSON.stringify(question), timeoutMs: TIMEOUT_MS })
  return told.exitCode === 0 && told.stdout.trim() ? JSON.parse(told.stdout) : {}
}

/** compactd's summary and the newest messages; undefined if compactd has no summary. */
async function replaced(
  $: EngineInterface,
  messages: readonly SessionMessage[],
): Promise<SessionCompactResult | undefined> {
  const answer = await ask($, 'replace', messages, HEAD_CHARS)
  if (typeof answer.summary !== 'string' || answer.summary === '') return undefined
  if (typeof answer.keep_from !== 'number' || !(answer.keep_from > 0)) return undefined
  const summary: SessionMessage = { role: 'user', text: answer.summary, toolUses: [] }
  return { messages: [summary, ...staying(messages.slice(answer.keep_from))] }
}

/** What Claude Code's own compaction made, with the facts that its summary lost. */
async function completed($: EngineInterface, done: SessionCompactResult): Promise<SessionCompactResult> {
  if (done.messages === undefined || !done.messages.every(isWhole)) return done
  const answer = await ask($, 'complete', done.messages, Infinity)
  if (typeof answer.text !== 'string' || answer.text === '') return done
  const facts: SessionMessage = { role: 'user', text: answer.text, toolUses: [] }
  return { ...done, messages: [...staying(done.messages), facts] }
}

export const register: Register = (on, options) => {
  on('session.compact', async ($, e, next) => {
    // A sub-agent's conversation is not mirrored. What is computed ahead is asked again when it is used.
    if (e.agentId !== undefined || e.trigger === 'precompute') return next(e)
    // Only a model can follow instructions that were typed after /compact.
    if (options?.replace !== false && !e.instructions) {
      const answer = await replaced($, e.messages).catch(() => undefined)
      if (answer !== undefined) return answer
    }
    const begun = await ask($, 'begin', [], HEAD_CHARS).catch(() => ({ ready: false }))
    const done = await next(e)
    return begun.ready ? completed($, done).catch(() => done) : done
  }).catch(($, e, next) => next(e))
}
