--- A conversation with the session's model in a buffer: what is written below the rule is the next prompt.
local daemon = require("compactd.daemon")
local events = require("compactd.chat_events")
local gauge = require("compactd.gauge")
local sessions = require("compactd.sessions")
local text = require("compactd.text")
local view = require("compactd.chat_buffer")
local window = require("compactd.window")

local M = {}

---@type table<integer, compactd.Chat>
local chats = {}

--- The title and the gauge, above each window of the conversation.
local function show_title(chat)
  local session = sessions.open[chat.id]
  for _, each in ipairs(vim.api.nvim_buf_is_valid(chat.buffer) and vim.fn.win_findbuf(chat.buffer) or {}) do
    if session then
      local said = (" %s · %s"):format(text.line(session.title, 40), gauge.short(session)):gsub("%%", "%%%%")
      vim.wo[each].winbar = said
    end
  end
end

local function forget(chat, sent)
  chat.sent = vim.tbl_filter(function(each)
    return each ~= sent
  end, chat.sent)
end

--- Shows a prompt, and sends it.
---@param chat compactd.Chat
---@param prompt string
local function say(chat, prompt)
  local buffer = chat.buffer
  local sent = { prompt = prompt, block = view.add_prompt(chat, prompt), is_queued = false }
  table.insert(chat.sent, sent)
  for _, each in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.api.nvim_win_set_cursor(each, { vim.api.nvim_buf_line_count(buffer), 0 })
  end
  chat.asking = chat.asking + 1
  sessions.request("agent/prompt", { session_id = chat.id, text = prompt }, function(failure, result)
    chat.asking = chat.asking - 1
    if failure then
      forget(chat, sent)
      events.tell(chat, "✗ " .. text.line(tostring(failure.message), 200))
      local lines_now = vim.api.nvim_buf_get_lines(buffer, view.row(chat) + 1, -1, false)
      if vim.trim(table.concat(lines_now)) == "" then
        vim.api.nvim_buf_set_lines(buffer, view.row(chat) + 1, -1, false, vim.split(prompt, "\n"))
      end
    else
      sent.turn, sent.is_queued = result.turn_id, result.queued
      chat.turns[result.turn_id] = true
      if result.queued then
        view.say_behind(chat, sent.block, "(waits until the answer before it is done)")
      end
    end
    events.release(chat, chat.waiting_for_prompt)
  end)
end

--- Sends what is written below the rule.
---@param buffer integer
function M.send(buffer)
  local chat = chats[buffer]
  local row = chat and view.row(chat)
  if chat == nil or row == nil then
    return
  end
  local prompt = vim.trim(table.concat(vim.api.nvim_buf_get_lines(buffer, row + 1, -1, false), "\n"))
  if prompt == "" then
    return
  end
  vim.api.nvim_buf_set_lines(buffer, row + 1, -1, false, { "" })
  if not events.is_followed(chat) then
    return say(chat, prompt)
  end
  -- What others said before this prompt is above it.
  sessions.take(chat.id, function()
    events.reload(chat, function()
      say(chat, prompt)
    end)
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
  show_title(chat)
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
  local chat = events.new(session.id, buffer)
  chats[buffer] = chat
  vim.bo[buffer].modifiable = true
  vim.bo[buffer].buftype = "nofile"
  map(chat)
  local function listener(_, event)
    if event.type == "changed" then
      show_title(chat)
    else
      events.on_event(chat, event)
    end
  end
  sessions.listen(session.id, listener)
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    callback = function()
      sessions.unlisten(session.id, listener)
      chats[buffer] = nil
    end,
  })
  view.row(chat)
  events.reload(chat, function()
    show(chat)
  end)
end

return M
