--- The buffer of a conversation: what was said, a rule, and below it the next prompt.
local text = require("compactd.text")

local M = {}

---@class compactd.ChatBuffer
---@field buffer integer
---@field streamed? integer Extmark where the answer that streams in begins.
---@field lines integer How many lines of it there are.
---@field held string What streamed in so far.

---@class compactd.ChatBlock Lines that can be moved to the end.
---@field mark integer Extmark of the first one.
---@field count integer

local namespace = vim.api.nvim_create_namespace("compactd.chat")
local RULE = "──── you: <CR> or <C-s> sends · <C-c> stops ────"

---@param buffer integer
---@return compactd.ChatBuffer
function M.new(buffer)
  return { buffer = buffer, lines = 0, held = "" }
end

local function rule_row(view)
  local marks = vim.api.nvim_buf_get_extmarks(view.buffer, namespace, 0, -1, { details = true })
  for _, mark in ipairs(marks) do
    if mark[4].line_hl_group == "CompactdFaint" and mark[4].right_gravity ~= false and mark[4].priority == 201 then
      return mark[2]
    end
  end
  return nil
end

local function place_rule(view)
  local last = vim.api.nvim_buf_line_count(view.buffer)
  vim.api.nvim_buf_set_lines(view.buffer, last, last, false, { RULE, "" })
  vim.api.nvim_buf_set_extmark(view.buffer, namespace, last, 0, { line_hl_group = "CompactdFaint", priority = 201 })
end

--- The row of the rule, which is put back if somebody deleted it.
---@param view compactd.ChatBuffer
---@return integer
function M.row(view)
  local row = rule_row(view)
  if row == nil or vim.api.nvim_buf_get_lines(view.buffer, row, row + 1, false)[1] ~= RULE then
    place_rule(view)
    row = rule_row(view) or vim.api.nvim_buf_line_count(view.buffer) - 2
  end
  return row
end

--- Calls `act`, which changes lines above the rule. Windows whose cursor is below it stay at the end.
local function follow(view, act)
  local at_end = {}
  for _, each in ipairs(vim.fn.win_findbuf(view.buffer)) do
    local row = vim.api.nvim_win_get_cursor(each)[1]
    at_end[each] = row >= M.row(view)
  end
  act()
  for each, was in pairs(at_end) do
    if was then
      local count = vim.api.nvim_buf_line_count(view.buffer)
      local cursor = vim.api.nvim_win_get_cursor(each)
      if cursor[1] <= M.row(view) + 1 then
        pcall(vim.api.nvim_win_set_cursor, each, { count, 0 })
      end
    end
  end
end

local function row_of(view, mark)
  return vim.api.nvim_buf_get_extmark_by_id(view.buffer, namespace, mark, {})[1]
end

--- `said` as lines of the buffer.
---@param said string
---@return string[]
function M.split(said)
  return vim.split(text.clean(said), "\n", { plain = true })
end

--- Adds lines above the rule, and an empty one.
---@param view compactd.ChatBuffer
---@param lines string[]
---@param group? string How the lines look.
---@return compactd.ChatBlock
function M.add(view, lines, group)
  local block = { count = #lines + 1 }
  follow(view, function()
    local row = M.row(view)
    vim.api.nvim_buf_set_lines(view.buffer, row, row, false, vim.list_extend(vim.list_extend({}, lines), { "" }))
    block.mark = vim.api.nvim_buf_set_extmark(view.buffer, namespace, row, 0, {})
    for index = 0, group and #lines - 1 or -1 do
      vim.api.nvim_buf_set_extmark(view.buffer, namespace, row + index, 0, { line_hl_group = group })
    end
  end)
  return block
end

--- Adds a prompt. `author`: the client that sent it, if it was not this one.
---@param view compactd.ChatBuffer
---@param said string
---@param author? string
---@return compactd.ChatBlock
function M.add_prompt(view, said, author)
  local lines = M.split(said)
  lines[1] = "› " .. lines[1]
  local block = M.add(view, lines, "CompactdHead")
  if author then
    M.say_behind(view, block, ("(from %s)"):format(text.line(author, 40)))
  end
  return block
end

--- Shows words behind the first line of a block, in place of those that were there.
---@param view compactd.ChatBuffer
---@param block compactd.ChatBlock
---@param words string
function M.say_behind(view, block, words)
  local row = row_of(view, block.mark)
  if row then
    local shown = words ~= "" and { { " " .. words, "CompactdFaint" } } or nil
    vim.api.nvim_buf_set_extmark(view.buffer, namespace, row, 0, { id = block.mark, virt_text = shown })
  end
end

--- Takes a block out of the buffer.
---@param view compactd.ChatBuffer
---@param block compactd.ChatBlock
function M.remove(view, block)
  local row = row_of(view, block.mark)
  if row then
    vim.api.nvim_buf_clear_namespace(view.buffer, namespace, row, row + block.count)
    vim.api.nvim_buf_set_lines(view.buffer, row, row + block.count, false, {})
  end
end

--- Adds text of the answer that streams in.
---@param view compactd.ChatBuffer
---@param delta string
function M.stream(view, delta)
  follow(view, function()
    if view.streamed == nil then
      local row = M.row(view)
      vim.api.nvim_buf_set_lines(view.buffer, row, row, false, { "", "" })
      view.streamed = vim.api.nvim_buf_set_extmark(view.buffer, namespace, row, 0, { right_gravity = false })
      view.held = ""
      view.lines = 1
    end
    view.held = view.held .. delta
    local last = row_of(view, view.streamed) + view.lines - 1
    local lines = M.split(delta)
    lines[1] = (vim.api.nvim_buf_get_lines(view.buffer, last, last + 1, false)[1] or "") .. lines[1]
    vim.api.nvim_buf_set_lines(view.buffer, last, last + 1, false, lines)
    view.lines = view.lines + #lines - 1
  end)
end

--- The answer is whole: where parts of the stream were left out, it is put in its place.
---@param view compactd.ChatBuffer
---@param said string
function M.settle(view, said)
  if view.streamed == nil then
    if said ~= "" then
      M.add(view, M.split(said))
    end
    return
  end
  if view.held ~= said then
    follow(view, function()
      local from = row_of(view, view.streamed)
      vim.api.nvim_buf_set_lines(view.buffer, from, from + view.lines, false, M.split(said))
    end)
  end
  vim.api.nvim_buf_del_extmark(view.buffer, namespace, view.streamed)
  view.streamed = nil
  view.held = ""
end

--- Takes the answer that streams in out of the buffer.
---@param view compactd.ChatBuffer
function M.drop_stream(view)
  if view.streamed then
    local from = row_of(view, view.streamed)
    vim.api.nvim_buf_del_extmark(view.buffer, namespace, view.streamed)
    vim.api.nvim_buf_set_lines(view.buffer, from, from + view.lines + 1, false, {})
    view.streamed = nil
  end
end

--- Empties the buffer above the rule.
---@param view compactd.ChatBuffer
function M.clear(view)
  local row = M.row(view)
  view.streamed = nil
  vim.api.nvim_buf_clear_namespace(view.buffer, namespace, 0, row)
  vim.api.nvim_buf_set_lines(view.buffer, 0, row, false, {})
end

return M
