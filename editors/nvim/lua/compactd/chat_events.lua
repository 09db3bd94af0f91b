--- What is said in a conversation, by the model, by this editor and by other clients of the session.
local daemon = require("compactd.daemon")
local sessions = require("compactd.sessions")
local text = require("compactd.text")
local view = require("compactd.chat_buffer")

local M = {}

---@class compactd.Chat: compactd.ChatBuffer
---@field id string
---@field is_answering boolean
---@field told string[] What went wrong since the conversation was last read as a whole.
---@field last? string The newest entry that was shown.
---@field shown table<string, boolean> The ids of the entries that were shown.
---@field authors table<string, string> By entry, the client that sent the prompt, if it was another one.
---@field sent compactd.Sent[] The prompts of this editor that are not in the session yet.
---@field asking integer How many prompts are sent and not taken up yet.
---@field rules table<string, {block: compactd.ChatBlock, is_in_force: boolean}> By the compaction's id.
---@field epoch? integer
---@field is_compacted boolean A compaction was shown since the rules were looked at.
---@field waiting? table[] Events that wait until an answer of the daemon is shown.
---@field waiting_for_prompt? table[] Those of them that wait for the answer to a prompt.
---@field turns table<string, boolean> The ids of the prompts of this editor.

---@class compactd.Sent
---@field prompt string
---@field block compactd.ChatBlock
---@field turn? string Its id, once the daemon has it.
---@field is_queued boolean

---@param id string The session.
---@param buffer integer
---@return compactd.Chat
function M.new(id, buffer)
  return vim.tbl_extend("error", view.new(buffer), {
    id = id,
    is_answering = false,
    told = {},
    shown = {},
    authors = {},
    sent = {},
    asking = 0,
    rules = {},
    is_compacted = false,
    turns = {},
  })
end

local function answer_of(message)
  local parts = {}
  local content = type(message) == "table" and message.content or {}
  if type(content) == "string" then
    return content
  end
  for _, block in ipairs(content or {}) do
    if type(block) == "table" and block.type == "text" then
      parts[#parts + 1] = block.text
    end
  end
  return table.concat(parts, "\n")
end

--- Whether the session is only looked at here: then what is said in it comes as a history, not as a stream.
---@param chat compactd.Chat
---@return boolean
function M.is_followed(chat)
  return vim.tbl_get(sessions.open, chat.id, "read_only") == true
end

local function is_other(event)
  return type(event.client) == "string" and event.client ~= sessions.CLIENT.name
end

--- Adds the line of a compaction.
local function add_rule(chat, id, result, is_in_force, author)
  local line = ("──── compacted %s · %s → %s · :Compactd undo, :Compactd context ────"):format(
    text.count(result.messages_removed, "message"),
    text.number(result.tokens_before),
    text.number(result.tokens_after)
  )
  local rule = { block = view.add(chat, { line }, "CompactdFaint"), is_in_force = is_in_force }
  if not is_in_force then
    view.say_behind(chat, rule.block, "(no longer in force)")
  elseif author then
    view.say_behind(chat, rule.block, ("(by %s)"):format(text.line(author, 40)))
  end
  chat.rules[id] = rule
end

--- Shows an entry of a history, unless it is there already.
local function add_entry(chat, entry)
  chat.last = entry.entry_id
  if chat.shown[entry.entry_id] then
    return
  end
  chat.shown[entry.entry_id] = true
  local role = vim.tbl_get(entry, "message", "role")
  if entry.kind == "compaction" and entry.compaction then
    add_rule(chat, entry.entry_id, entry.compaction, entry.in_context)
  elseif entry.kind == "message" and role == "user" then
    local said = text.message(entry.message)
    if said ~= "" then
      view.add_prompt(chat, said, chat.authors[entry.entry_id])
    end
  elseif entry.kind == "message" and role == "assistant" then
    local said = answer_of(entry.message)
    if said ~= "" then
      view.add(chat, view.split(said))
    end
  end
end

--- Shows what went wrong. It is shown again when the conversation is read as a whole after that.
---@param chat compactd.Chat
---@param line string
function M.tell(chat, line)
  table.insert(chat.told, line)
  view.add(chat, { line }, "CompactdOver")
end

--- Lets events wait from now on.
---@return table[] waiting Those that wait, for `release`.
local function hold(chat)
  chat.waiting = vim.list_extend({}, chat.waiting or {})
  return chat.waiting
end

--- Shows the events that waited, unless the daemon that they came from has ended.
---@param chat compactd.Chat
---@param waiting? table[]
function M.release(chat, waiting)
  if waiting == nil or chat.waiting ~= waiting then
    return
  end
  chat.waiting = nil
  for _, event in ipairs(waiting) do
    M.on_event(chat, event)
  end
end

--- Asks for entries of the history. Events wait until `show` has shown them.
---@param chat compactd.Chat
---@param more table Further params.
---@param show fun(entries: table[])
---@param callback? fun() Called then, also if there was no answer.
local function ask_history(chat, more, show, callback)
  local waiting = hold(chat)
  local params = vim.tbl_extend("error", { session_id = chat.id }, more)
  daemon.request("session/history", params, function(failure, result)
    if chat.waiting == waiting and not failure and vim.api.nvim_buf_is_valid(chat.buffer) then
      show(result.entries)
    end
    M.release(chat, waiting)
    if callback and vim.api.nvim_buf_is_valid(chat.buffer) then
      callback()
    end
  end)
end

--- Shows the messages that came since, as one entry after the other.
local function catch_up(chat)
  ask_history(chat, { from = chat.last }, function(entries)
    for _, entry in ipairs(entries) do
      add_entry(chat, entry)
    end
  end)
end

--- Shows the whole conversation as it is stored, and below it the prompts that wait; then calls `callback`.
---@param chat compactd.Chat
---@param callback? fun()
function M.reload(chat, callback)
  ask_history(chat, {}, function(entries)
    view.clear(chat)
    chat.shown, chat.rules, chat.last = {}, {}, nil
    for _, entry in ipairs(entries) do
      add_entry(chat, entry)
    end
    for _, each in ipairs(chat.sent) do
      each.block = view.add_prompt(chat, each.prompt)
    end
    for _, line in ipairs(chat.told) do
      view.add(chat, { line }, "CompactdOver")
    end
    chat.told = {}
    chat.epoch = vim.tbl_get(sessions.open, chat.id, "usage", "epoch")
  end, callback)
end

--- Marks the compactions that are in force, after something changed the context.
local function look_at_rules(chat, event)
  local was_compacted = chat.is_compacted
  chat.is_compacted = false
  if next(chat.rules) == nil then
    return
  end
  ask_history(chat, { in_context = true }, function(entries)
    local in_force = {}
    for _, entry in ipairs(entries) do
      local id = vim.tbl_get(entry, "compaction", "compaction_id")
      if id then
        in_force[id] = true
      end
    end
    local said
    for id, rule in pairs(chat.rules) do
      local is_in_force = in_force[id] == true
      if is_in_force ~= rule.is_in_force then
        rule.is_in_force = is_in_force
        view.say_behind(chat, rule.block, is_in_force and "" or "(no longer in force)")
        said = is_in_force and "put the compaction in force again" or said or "took the compaction back"
      end
    end
    if said and not was_compacted and is_other(event) then
      view.add(chat, { ("%s %s"):format(text.line(event.client, 40), said) }, "CompactdFaint")
    end
  end)
end

--- A prompt of this editor is in the session now. One that had to wait goes below what was said meanwhile.
local function take_up(chat, event)
  for index, each in ipairs(chat.sent) do
    if each.turn == event.turn_id then
      table.remove(chat.sent, index)
      if chat.shown[event.entry_id] then
        view.remove(chat, each.block)
      elseif each.is_queued then
        view.remove(chat, each.block)
        view.add_prompt(chat, each.prompt)
      end
      break
    end
  end
  chat.shown[event.entry_id] = true
  chat.last = event.entry_id
end

---@type table<string, fun(chat: compactd.Chat, event: table)>
local ACTS = {
  message_appended = function(chat, event)
    if chat.turns[event.turn_id or 0] then
      take_up(chat, event)
    elseif chat.shown[event.entry_id] then
      chat.last = event.entry_id
    elseif M.is_followed(chat) or event.turn_id == nil then
      catch_up(chat)
    elseif event.role ~= "user" then
      -- It was shown as it came.
      chat.shown[event.entry_id] = true
      chat.last = event.entry_id
    elseif chat.asking > 0 then
      -- It may be the one that was just sent: the daemon's answer says so.
      chat.waiting_for_prompt = hold(chat)
      table.insert(chat.waiting, event)
    else
      chat.authors[event.entry_id] = type(event.client) == "string" and event.client or "another program"
      ask_history(chat, { from = event.entry_id, limit = 1 }, function(entries)
        for _, entry in ipairs(entries) do
          add_entry(chat, entry)
        end
      end)
    end
  end,
  session_changed = function(chat, event)
    if event.what == "branch" then
      M.reload(chat)
    end
  end,
  resumed = function(chat)
    -- A prompt may have got into the session when the daemon ended: it is not shown as one that waits, too.
    daemon.request("agent/state", { session_id = chat.id }, function(failure, state)
      local queued = {}
      for _, each in ipairs(not failure and state.prompts or {}) do
        queued[each.prompt_id] = true
      end
      chat.sent = vim.tbl_filter(function(each)
        return each.turn == nil or queued[each.turn]
      end, chat.sent)
      M.reload(chat)
    end)
  end,
  session_closed = function(chat, event)
    if event.reason == "deleted" then
      view.add(chat, { "this session was deleted by another program" }, "CompactdOver")
    end
  end,
  agent_start = function(chat)
    chat.is_answering = true
  end,
  message_delta = function(chat, event)
    view.stream(chat, event.delta)
  end,
  message_end = function(chat, event)
    local id = type(event.entry_id) == "string" and event.entry_id or nil
    if id and chat.shown[id] then
      return view.drop_stream(chat) -- it came with the history
    end
    view.settle(chat, answer_of(event.message))
    local content = type(event.message) == "table" and event.message.content
    for _, block in ipairs(type(content) == "table" and content or {}) do
      if type(block) == "table" and block.type == "tool_call" then
        view.add(chat, { text.line(text.block(block), 100) }, "CompactdFaint")
      end
    end
    if id then
      chat.shown[id] = true
    end
  end,
  tool_execution_end = function(chat, event)
    if event.is_error then
      view.add(chat, { ("✗ %s"):format(text.clean(event.name)) }, "CompactdFaint")
    end
  end,
  retry = function(chat, event)
    view.add(chat, { ("again (%d): %s"):format(event.attempt, text.line(event.reason, 80)) }, "CompactdFaint")
  end,
  agent_end = function(chat, event)
    chat.is_answering = false
    if event.stop_reason == "aborted" then
      view.add(chat, { "stopped" }, "CompactdFaint")
    end
  end,
  error = function(chat, event)
    chat.is_answering = false
    view.settle(chat, chat.held or "")
    view.add(chat, { "✗ " .. text.line(event.message, 200) }, "CompactdOver")
  end,
  compaction_end = function(chat, event)
    local result = event.result
    if event.status == "completed" and result then
      if not chat.shown[event.compaction_id] then
        chat.shown[event.compaction_id] = true
        add_rule(chat, event.compaction_id, result, true, is_other(event) and event.client or nil)
        chat.is_compacted = true
      end
    elseif event.status == "failed" and event.error then
      view.add(chat, { "✗ compaction failed: " .. text.line(event.error.message, 120) }, "CompactdOver")
    end
  end,
  usage_update = function(chat, event)
    local epoch = event.usage.epoch
    if epoch ~= chat.epoch then
      chat.epoch = epoch
      look_at_rules(chat, event)
    end
  end,
  gone = function(chat)
    if chat.is_answering then
      chat.is_answering = false
      view.settle(chat, chat.held or "")
      M.tell(chat, "the daemon ended while it answered; ask again")
    end
  end,
}

--- Takes an event of the session, from the daemon or from `compactd.sessions`.
---@param chat compactd.Chat
---@param event table
function M.on_event(chat, event)
  if not vim.api.nvim_buf_is_valid(chat.buffer) then
    return
  elseif event.type == "gone" then
    chat.waiting = nil -- what the daemon would have answered does not come
  elseif chat.waiting then
    table.insert(chat.waiting, event)
    return
  end
  local act = ACTS[event.type]
  if act then
    act(chat, event)
  end
end

return M
