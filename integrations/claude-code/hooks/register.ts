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
/** From this fill of the context window on, compactd writes its summary ahead, so that a compaction takes no time. */
const PREPARE_PERCENT = 40
/** After this many more tokens, it writes the summary again. */
const PREPARE_TOKENS = 8000
/** About so many of the newest messages stay when Claude Code compacts. */
const NEWEST = 8
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

/** The index of the first message of the turn that is under way: the one after the newest prompt. */
function turnBegin(messages: readonly SessionMessage[]): number {
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]!
    if (message.role === 'user' && !message.toolResults?.length) return at + 1
  }
  return 0
}

/**
 * The messages that stay, in the form in which Claude Code has to get them so that `--continue` reads them back as they
 * are now (2.1.287 to 2.1.332, run 2026-11).
 *
 * - A tool result that stays by its handle still names the old call as its parent, and `--continue` then restores
 *   everything before the compaction. So results are repeated without handles.
 * - An answer that stays by its handle stands twice after `--continue`. So answers are repeated too, all blocks of an
 *   answer as one message; otherwise the calls of one answer lose their results.
 * - Only the answers of the turn under way (`openFrom`) stay by their handles, because the model needs their thinking.
 */
function staying(messages: readonly SessionMessage[], openFrom: number): SessionMessage[] {
  const found: SessionMessage[] = []
  const calls = new Set<string>()
  const results = new Set<string>()
  for (let at = 0; at < messages.length; ) {
    const message = messages[at]!
    if (message.role === 'user') {
      const fresh = (message.toolResults ?? []).filter((result) => !results.has(result.tool_use_id))
      for (const result of fresh) results.add(result.tool_use_id)
      if (!message.toolResults?.length) found.push(message)
      else if (fresh.length) found.push({ role: 'user', text: message.text, toolUses: [], toolResults: fresh })
      at += 1
      continue
    }
    const texts: string[] = []
    const toolUses: SessionMessage['toolUses'] = []
    let end = at
    for (; messages[end]?.role === 'assistant'; end++) {
      const block = messages[end]!
      const fresh = block.toolUses.filter((use) => !calls.has(use.tool_use_id))
      for (const use of fresh) calls.add(use.tool_use_id)
      toolUses.push(...fresh)
      const isRepeated = (block.text !== '' && texts.includes(block.text)) || fresh.length < block.toolUses.length
      if (block.text !== '' && !isRepeated) texts.push(block.text)
      if (at >= openFrom && !isRepeated) found.push(block)
    }
    if (at < openFrom && (texts.length || toolUses.length)) {
      found.push({ role: 'assistant', text: texts.join('\n\n'), toolUses })
    }
    at = end
  }
  return found
}

/** The path of the transcript; empty where Claude Code does not say it (2.1.290). compactd knows it from the hooks. */
async function transcriptPath($: EngineInterface): Promise<string> {
  try {
    return (await $.session.info()).transcriptPath
  } catch {
    return ''
  }
}

/** Asks compactd about the session. Returns its answer, or an empty object if it has none. */
async function ask(
  $: EngineInterface,
  step: 'replace' | 'prepare' | 'begin' | 'complete',
  messages: readonly SessionMessage[],
  headChars: number,
): Promise<Answer> {
  const question = {
    hook_event_name: 'session.compact',
    session_id: await $.session.id(),
    transcript_path: await transcriptPath($),
    cwd: await $.session.cwd(),
    step,
    messages: messages.map((message) => described(message, headChars)),
  }
  const argv = ['compactd', 'hook', 'claude-code', '--deadline', String(DEADLINE_S)]
  const told = await $.process.run(argv, { cwd: '/', stdin: JSON.stringify(question), timeoutMs: TIMEOUT_MS })
  return told.exitCode === 0 && told.stdout.trim() ? JSON.parse(told.stdout) : {}
}

/** compactd's summary and the newest messages, with a turn under way if `isOpen`; undefined if compactd has no summary. */
async function replaced(
  $: EngineInterface,
  messages: readonly SessionMessage[],
  isOpen: boolean,
): Promise<SessionCompactResult | undefined> {
  const answer = await ask($, 'replace', messages, HEAD_CHARS)
  if (typeof answer.summary !== 'string' || answer.summary === '') return undefined
  if (typeof answer.keep_from !== 'number' || !(answer.keep_from > 0)) return undefined
  const summary: SessionMessage = { role: 'user', text: answer.summary, toolUses: [] }
  const kept = messages.slice(answer.keep_from)
  return { messages: [summary, ...staying(kept, isOpen ? turnBegin(kept) : kept.length)] }
}

/** What Claude Code's own compaction made, with the facts that its summary lost. */
async function completed(
  $: EngineInterface,
  done: SessionCompactResult,
  isOpen: boolean,
): Promise<SessionCompactResult> {
  if (done.messages === undefined || !done.messages.every(isWhole)) return done
  const answer = await ask($, 'complete', done.messages, Infinity)
  if (typeof answer.text !== 'string' || answer.text === '') return done
  const facts: SessionMessage = { role: 'user', text: answer.text, toolUses: [] }
  return { ...done, messages: [...staying(done.messages, isOpen ? turnBegin(done.messages) : done.messages.length), facts] }
}

export const register: Register = (on, options) => {
  let preparedAt = 0
  let isPreparing = false

  on('session.measure', async ($, e, next) => {
    const { tokens = 0, percent = 0 } = e.context
    if (tokens < preparedAt) preparedAt = 0
    const isDue = percent >= PREPARE_PERCENT && tokens >= preparedAt + PREPARE_TOKENS
    if (options?.replace !== false && isDue && !isPreparing) {
      isPreparing = true
      preparedAt = tokens
      void ask($, 'prepare', [], HEAD_CHARS)
        .catch(() => undefined)
        .then(() => (isPreparing = false))
    }
    return next(e)
  })

  on('session.compact', async ($, e, next) => {
    // A sub-agent's conversation is not mirrored. What is computed ahead is asked again when it is used.
    if (e.agentId !== undefined || e.trigger === 'precompute') return next(e)
    const isOpen = e.trigger === 'auto'
    // Only a model can follow instructions that were typed after /compact.
    if (options?.replace !== false && !e.instructions) {
      const answer = await replaced($, e.messages, isOpen)
      if (answer !== undefined) return answer
    }
    // What has to stay and cannot be repeated must not be touched. The hooks add what the summary lost.
    if (!e.messages.slice(-NEWEST).every(isWhole)) return next(e)
    const begun = await ask($, 'begin', [], HEAD_CHARS).catch(() => ({ ready: false }))
    const done = await next(e)
    return begun.ready ? completed($, done, isOpen).catch(() => done) : done
  }).catch(($, e, next) => next(e))
}
