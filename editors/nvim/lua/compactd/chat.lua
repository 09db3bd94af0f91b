--- A conversation with the session's model in a buffer: what is written below the rule is the next prompt.
local daemon = require("compactd.daemon")
local gauge = require("compactd.gauge")
local sessions = require("compactd.sessions")
local text = require("compactd.text")
local window = require("compactd.window")

local M = {}

---@class compactd.Chat
---@field id string
---@field buffer integer
---@field is_answering boolean
---@field streamed? integer Extmark where the answer that streams in begins.
---@field streamed_kind? string
---@field held string What streamed in so far.
---@field last? string The newest entry that was shown.
---@field is_asking boolean Whether newer entries are on their way.
---@field is_stale boolean Something was said while they were.
---@field waiting fun()[] Called when everything that was said is shown.

local namespace = vim.api.nvim_create_namespace("compactd.chat")
local RULE = "──── you: <CR> or <C-s> sends · <C-c> stops ────"

---@type table<integer, compactd.Chat>
local chats = {}

local function rule_row(chat)
  local marks = vim.api.nvim_buf_get_extmarks(chat.buffer, namespace, 0, -1, { details = true })
  for _, mark in ipairs(marks) do
    if mark[4].line_hl_group == "CompactdFaint" and mark[4].right_gravity ~= false and mark[4].priority == 201 then
      return mark[2]
    end
  end
  return nil
end

local function place_rule(chat)
  local last = vim.api.nvim_buf_line_count(chat.buffer)
  vim.api.nvim_buf_set_lines(chat.buffer, last, last, false, { RULE, "" })
  vim.api.nvim_buf_set_extmark(chat.buffer, namespace, last, 0, { line_hl_group = "CompactdFaint", priority = 201 })
end

local function row_of_rule(chat)
  local row = rule_row(chat)
  if row == nil or vim.api.nvim_buf_get_lines(chat.buffer, row, row + 1, false)[1] ~= RULE then
    place_rule(chat)
    row = rule_row(chat) or vim.api.nvim_buf_line_count(chat.buffer) - 2
  end
  return row
end

local function follow(chat, act)
  local at_end = {}
  for _, each in ipairs(vim.fn.win_findbuf(chat.buffer)) do
    local row = vim.api.nvim_win_get_cursor(each)[1]
    at_end[each] = row >= row_of_rule(chat)
  end
  act()
  for each, was in pairs(at_end) do
    if was then
      local count = vim.api.nvim_buf_line_count(chat.buffer)
      local cursor = vim.api.nvim_win_get_cursor(each)
      if cursor[1] <= row_of_rule(chat) + 1 then
        pcall(vim.api.nvim_win_set_cursor, each, { count, 0 })
      end
    end
  end
end

--- Adds lines above the rule.
local function add(chat, lines, group)
  follow(chat, function()
    local row = row_of_rule(chat)
    vim.api.nvim_buf_set_lines(chat.buffer, row, row, false, lines)
    if group then
      for index = 0, #lines - 1 do
        vim.api.nvim_buf_set_extmark(chat.buffer, namespace, row + index, 0, { line_hl_group = group })
      end
    end
  end)
end

local function split(said)
  return vim.split(text.clean(said), "\n", { plain = true })
end

local function stream(chat, delta)
  follow(chat, function()
    local row = row_of_rule(chat)
    if chat.streamed == nil then
      vim.api.nvim_buf_set_lines(chat.buffer, row, row, false, { "", "" })
      chat.streamed = vim.api.nvim_buf_set_extmark(chat.buffer, namespace, row, 0, { right_gravity = false })
      chat.held = ""
      row = row + 2
    end
    chat.held = chat.held .. delta
    local last = vim.api.nvim_buf_get_lines(chat.buffer, row - 2, row - 1, false)[1] or ""
    local lines = split(delta)
    lines[1] = last .. lines[1]
    vim.api.nvim_buf_set_lines(chat.buffer, row - 2, row - 1, false, lines)
  end)
end

--- The answer is whole: where parts of the stream were left out, it is put in its place.
local function settle(chat, said)
  if chat.streamed == nil then
    if said ~= "" then
      add(chat, vim.list_extend(split(said), { "" }))
    end
  elseif chat.held ~= said then
    follow(chat, function()
      local from = vim.api.nvim_buf_get_extmark_by_id(chat.buffer, namespace, chat.streamed, {})[1]
      vim.api.nvim_buf_set_lines(chat.buffer, from, row_of_rule(chat) - 1, false, split(said))
    end)
  end
  if chat.streamed then
    vim.api.nvim_buf_del_extmark(chat.buffer, namespace, chat.streamed)
    chat.streamed = nil
  end
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

--- Shows entries of a history above the rule.
local function add_entries(chat, history)
  local lines, heads = {}, {}
  for _, entry in ipairs(history) do
    local role = vim.tbl_get(entry, "message", "role")
    if entry.kind == "message" and (role == "user" or role == "assistant") then
      local said = role == "user" and text.message(entry.message) or answer_of(entry.message)
      if said ~= "" then
        local shown = split(said)
        if role == "user" then
          shown[1] = "› " .. shown[1]
          for index = 1, #shown do
            heads[#heads + 1] = #lines + index - 1
          end
        end
        vim.list_extend(lines, shown)
        lines[#lines + 1] = ""
      end
    end
    chat.last = entry.entry_id
  end
  local row = row_of_rule(chat)
  add(chat, lines)
  for _, each in ipairs(heads) do
    vim.api.nvim_buf_set_extmark(chat.buffer, namespace, row + each, 0, { line_hl_group = "CompactdHead" })
  end
end

--- Shows what another program said in a session that is only looked at here; then calls `callback`.
---@param chat compactd.Chat
---@param callback? fun()
local function catch_up(chat, callback)
  table.insert(chat.waiting, callback)
  if chat.is_asking then
    chat.is_stale = true
    return
  end
  chat.is_asking = true
  local from = chat.last
  daemon.request("session/history", { session_id = chat.id, from = from }, function(failure, result)
    chat.is_asking = false
    if not failure and vim.api.nvim_buf_is_valid(chat.buffer) then
      local is_shown = from ~= nil and vim.tbl_get(result.entries, 1, "entry_id") == from
      add_entries(chat, vim.list_slice(result.entries, is_shown and 2 or 1))
    end
    if chat.is_stale then
      chat.is_stale = false
      return catch_up(chat)
    end
    local waiting = chat.waiting
    chat.waiting = {}
    for _, each in ipairs(waiting) do
      each()
    end
  end)
end

local function is_followed(chat)
  return vim.tbl_get(sessions.open, chat.id, "read_only") == true
end

---@type table<string, fun(chat: compactd.Chat, event: table)>
local ACTS = {
  message_appended = function(chat, event)
    if is_followed(chat) then
      catch_up(chat)
    else
      chat.last = event.entry_id -- what is said here is shown as it comes
    end
  end,
  session_changed = function(chat, event)
    if is_followed(chat) and event.what == "branch" then
      vim.api.nvim_buf_set_lines(chat.buffer, 0, row_of_rule(chat), false, {})
      chat.last = nil
      catch_up(chat)
    end
  end,
  resumed = function(chat)
    if is_followed(chat) then
      catch_up(chat)
    end
  end,
  session_closed = function(chat, event)
    if event.reason == "deleted" then
      add(chat, { "this session was deleted by another program", "" }, "CompactdOver")
    end
  end,
  agent_start = function(chat)
    chat.is_answering = true
  end,
  message_delta = function(chat, event)
    stream(chat, event.delta)
  end,
  message_end = function(chat, event)
    settle(chat, answer_of(event.message))
    for _, block in ipairs(type(event.message) == "table" and event.message.content or {}) do
      if type(block) == "table" and block.type == "tool_call" then
        add(chat, { text.line(text.block(block), 100), "" }, "CompactdFaint")
      end
    end
  end,
  tool_execution_end = function(chat, event)
    if event.is_error then
      add(chat, { ("✗ %s"):format(text.clean(event.name)), "" }, "CompactdFaint")
    end
  end,
  retry = function(chat, event)
    add(chat, { ("again (%d): %s"):format(event.attempt, text.line(event.reason, 80)), "" }, "CompactdFaint")
  end,
  agent_end = function(chat, event)
    chat.is_answering = false
    if event.stop_reason == "aborted" then
      add(chat, { "stopped", "" }, "CompactdFaint")
    end
  end,
  error = function(chat, event)
    chat.is_answering = false
    settle(chat, chat.held or "")
    add(chat, { "✗ " .. text.line(event.message, 200), "" }, "CompactdOver")
  end,
  compaction_end = function(chat, event)
    local result = event.result
    if event.status == "completed" and result then
      local rule = ("──── compacted %s · %s → %s · :Compactd undo, :Compactd context ────"):format(
        text.count(result.messages_removed, "message"),
        text.number(result.tokens_before),
        text.number(result.tokens_after)
      )
      add(chat, { rule, "" }, "CompactdFaint")
    elseif event.status == "failed" and event.error then
      add(chat, { "✗ compaction failed: " .. text.line(event.error.message, 120), "" }, "CompactdOver")
    end
  end,
  gone = function(chat)
    if chat.is_answering then
      chat.is_answering = false
      settle(chat, chat.held or "")
      add(chat, { "the daemon ended while it answered; ask again", "" }, "CompactdOver")
    end
  end,
}

local function on_event(chat, event)
  if not vim.api.nvim_buf_is_valid(chat.buffer) then
    return
  elseif event.type == "changed" then
    local session = sessions.open[chat.id]
    for _, each in ipairs(vim.fn.win_findbuf(chat.buffer)) do
      if session then
        local said = (" %s · %s"):format(text.line(session.title, 40), gauge.short(session)):gsub("%%", "%%%%")
        vim.wo[each].winbar = said
      end
    end
    return
  end
  local act = ACTS[event.type]
  if act then
    act(chat, event)
  end
end

--- Sends what is written below the rule.
---@param buffer integer
function M.send(buffer)
  local chat = chats[buffer]
  local row = chat and row_of_rule(chat)
  if chat == nil or row == nil then
    return
  end
  local prompt = vim.trim(table.concat(vim.api.nvim_buf_get_lines(buffer, row + 1, -1, false), "\n"))
  if prompt == "" then
    return
  end
  vim.api.nvim_buf_set_lines(buffer, row + 1, -1, false, { "" })
  local function say()
    local lines = split(prompt)
    lines[1] = "› " .. lines[1]
    add(chat, vim.list_extend(lines, { "" }), "CompactdHead")
    for _, each in ipairs(vim.fn.win_findbuf(buffer)) do
      vim.api.nvim_win_set_cursor(each, { vim.api.nvim_buf_line_count(buffer), 0 })
    end
    sessions.request("agent/prompt", { session_id = chat.id, text = prompt }, function(failure, result)
      if failure then
        add(chat, { "✗ " .. text.line(tostring(failure.message), 200), "" }, "CompactdOver")
        local lines_now = vim.api.nvim_buf_get_lines(buffer, row_of_rule(chat) + 1, -1, false)
        if vim.trim(table.concat(lines_now)) == "" then
          vim.api.nvim_buf_set_lines(buffer, row_of_rule(chat) + 1, -1, false, vim.split(prompt, "\n"))
        end
      elseif result.queued then
        add(chat, { "(waits until the answer before it is done)", "" }, "CompactdFaint")
      end
    end)
  end
  if not is_followed(chat) then
    return say()
  end
  -- What others said before this prompt is above it.
  sessions.take(chat.id, function()
    catch_up(chat, say)
  end)
end

--- The Markdown of the answers is drawn by Neovim: its own parser if it has one, else its syntax file. The marks are
--- concealed in the lines without the cursor.
local function draw_markdown(buffer)
  if vim.treesitter and vim.treesitter.start then
    pcall(vim.treesitter.start, buffer, "markdown")
  end
  for _, each in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.wo[each].conceallevel = 2
    vim.wo[each].concealcursor = ""
  end
end

local function show(chat)
  if vim.api.nvim_win_get_config(0).relative ~= "" then
    pcall(vim.cmd.close)
  end
  local shown = vim.fn.win_findbuf(chat.buffer)[1]
  if shown then
    vim.api.nvim_set_current_win(shown)
  else
    vim.cmd("botright vsplit")
    vim.api.nvim_win_set_buf(0, chat.buffer)
    vim.wo.wrap = true
    vim.wo.linebreak = true
    draw_markdown(chat.buffer)
  end
  vim.api.nvim_win_set_cursor(0, { vim.api.nvim_buf_line_count(chat.buffer), 0 })
  on_event(chat, { type = "changed" })
end

local function map(chat)
  local function key(modes, lhs, what, action)
    vim.keymap.set(modes, lhs, action, { buffer = chat.buffer, silent = true, desc = what })
  end
  local function send()
    M.send(chat.buffer)
  end
  key("n", "<CR>", "Send", send)
  key({ "n", "i" }, "<C-s>", "Send", send)
  key("n", "<C-c>", "Stop the answer", function()
    daemon.request("agent/abort", { session_id = chat.id }, function() end)
  end)
end

--- Opens the conversation of a session.
---@param session compactd.Open
function M.open(session)
  local buffer = window.buffer(session.id .. "/chat", "markdown")
  if chats[buffer] then
    return show(chats[buffer])
  end
  local chat = { id = session.id, buffer = buffer, is_answering = false, held = "" }
  chat.is_asking, chat.is_stale, chat.waiting = false, false, {}
  chats[buffer] = chat
  vim.bo[buffer].modifiable = true
  vim.bo[buffer].buftype = "nofile"
  map(chat)
  local function listener(_, event)
    on_event(chat, event)
  end
  sessions.listen(session.id, listener)
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    callback = function()
      sessions.unlisten(session.id, listener)
      chats[buffer] = nil
    end,
  })
  row_of_rule(chat)
  catch_up(chat, function()
    show(chat)
  end)
end

return M
