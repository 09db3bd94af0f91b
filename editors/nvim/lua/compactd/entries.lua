--- Entries of a session's history as lines: one line each, with its text folded behind it.
local text = require("compactd.text")

local M = {}

M.MOST_LINES = 40 -- of one entry's text in a list; the whole is one key away

---@class compactd.Page Lines, with what is behind them.
---@field lines string[]
---@field levels (integer|string)[] Of each line, as a foldexpr gives them.
---@field targets table<integer, compactd.Target> By line.
---@field marks {line: integer, group: string}[]

---@class compactd.Target What a line is about.
---@field entry? compactd.HistoryEntry
---@field compaction_id? string
---@field original? {entry_id: string, message: any}
---@field entry_id? string A message that the line names.

---@return compactd.Page
function M.page()
  return { lines = {}, levels = {}, targets = {}, marks = {} }
end

---@param page compactd.Page
---@param line string
---@param level? integer|string
---@param target? compactd.Target
---@param group? string
function M.add(page, line, level, target, group)
  local at = #page.lines + 1
  page.lines[at] = line
  page.levels[at] = level or 0
  page.targets[at] = target
  if group then
    page.marks[#page.marks + 1] = { line = at, group = group }
  end
end

--- The text of an entry, as it was appended or summarised.
---@param entry compactd.HistoryEntry
---@return string
function M.said(entry)
  if entry.compaction then
    return entry.compaction.summary or ""
  end
  return text.message(entry.message)
end

local function words_of(entry)
  local words = {}
  if entry.pinned then
    words[#words + 1] = "pinned"
  elseif entry.carried then
    words[#words + 1] = "carried over"
  end
  if entry.pruned_at then
    words[#words + 1] = "pruned"
  end
  if entry.compaction then
    words[#words + 1] = ("stands for %s"):format(text.count(entry.compaction.messages_removed, "message"))
  end
  return table.concat(words, ", ")
end

local function role_of(entry)
  if entry.compaction then
    return "summary"
  end
  return tostring(vim.tbl_get(entry, "message", "role") or entry.kind)
end

--- One line for an entry: id, role, tokens, what it is, how it begins.
---@param entry compactd.HistoryEntry
---@param width integer
---@return string
function M.head(entry, width)
  local said = M.said(entry)
  local words = words_of(entry)
  local begins = entry.title or said
  local line = ("%-6s %-9s %8s  %s"):format(
    text.clean(entry.entry_id),
    text.clean(role_of(entry)),
    entry.tokens and text.number(entry.tokens) or (#said .. " B"),
    words ~= "" and words .. " · " or ""
  )
  local taken = line:find("[\128-\255]") and vim.fn.strdisplaywidth(line) or #line
  return line .. text.line(begins, math.max(20, width - taken))
end

--- Adds what a message says below its line, folded, at most `most` lines of it.
---@param page compactd.Page
---@param said string
---@param indent string
---@param level integer
---@param target compactd.Target
---@param most integer
function M.add_body(page, said, indent, level, target, most)
  local from = 1
  for _ = 1, most do
    local stop = said:find("\n", from, true)
    M.add(page, indent .. text.clean(said:sub(from, (stop or 0) - 1)), level, target)
    if stop == nil then
      return
    end
    from = stop + 1
  end
  local _, more = said:sub(from):gsub("\n", "")
  M.add(page, ("%s… %s more: Enter shows all"):format(indent, text.count(more + 1, "line")), level, target)
end

---@param entry compactd.HistoryEntry
---@return string? group
function M.group(entry)
  if entry.compaction then
    return "CompactdSummary"
  elseif entry.pinned or entry.carried then
    return "CompactdPinned"
  elseif entry.pruned_at then
    return "CompactdFaint"
  end
  return nil
end

--- Colours of a page that a buffer shows; of its marks behind the first `done` alone.
---@param buffer integer
---@param page compactd.Page
---@param done? integer
function M.decorate(buffer, page, done)
  local namespace = vim.api.nvim_create_namespace("compactd")
  if done == nil then
    vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  end
  for at = (done or 0) + 1, #page.marks do
    local mark = page.marks[at]
    vim.api.nvim_buf_set_extmark(buffer, namespace, mark.line - 1, 0, { line_hl_group = mark.group })
  end
end

return M
