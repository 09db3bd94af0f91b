--- How full the context is, in a word for the status line and in three lines for who asks.
local config = require("compactd.config")
local text = require("compactd.text")

local M = {}

--- `◔ 41 %`; `◔ ~63 %?` where the window is a guess; `◔ 1,234` where no window is known.
---@param session compactd.Open
---@return string
function M.short(session)
  local usage = session.usage
  local said
  if session.compacting then
    said = ("compacting %d %%"):format(math.floor((session.compacting.fraction or 0) * 100 + 0.5))
  elseif usage.percent then
    local guess = usage.context_window_confidence == "guess"
    said = ("%s%.0f %%%s"):format(guess and "~" or "", usage.percent, guess and "?" or "")
  else
    said = text.number(usage.current_context_tokens)
  end
  local kind = require("compactd.sessions").kind(session)
  local words = { fits = "", due = " due", over = " over" }
  local held = session.held and " open in another program" or ""
  return ("%s %s%s%s"):format(config.values.icon, said, words[kind], held)
end

--- Highlight group of the gauge: colour only for what needs attention.
---@param session compactd.Open
---@return string? group
function M.group(session)
  local kind = require("compactd.sessions").kind(session)
  if kind == "over" then
    return "CompactdOver"
  elseif kind == "due" or session.usage.context_window_confidence == "guess" then
    return "CompactdDue"
  end
  return nil
end

--- What stands behind the gauge: size and its source, window and its, when a compaction is due.
---@param session compactd.Open
---@return string[]
function M.long(session)
  local usage = session.usage
  local percent = usage.percent and (" · %.1f %%"):format(usage.percent) or ""
  local lines = {
    ("%s · %s · %s"):format(
      text.line(session.title, 50),
      text.clean(session.model or "no model"),
      text.count(session.message_count, "message")
    ),
    ("used      %10s   %s%s"):format(
      text.number(usage.current_context_tokens),
      usage.current_context_source,
      percent
    ),
    ("window    %10s   %s"):format(text.number(usage.context_window), usage.context_window_confidence),
    ("compacts  %10s   %s"):format(
      text.number(usage.threshold_tokens),
      ({ fits = "", due = "due: before the next request", over = "over: the next request would not fit" })[require(
        "compactd.sessions"
      ).kind(session)]
    ),
  }
  local billed = type(usage.cost) == "table" and usage.cost.billed
  if type(billed) == "number" then
    lines[#lines + 1] = ("cost      %10s   so far, at list prices"):format(("$%.2f"):format(billed))
  end
  return vim.tbl_map(vim.trim, lines)
end

function M.define_highlights()
  vim.api.nvim_set_hl(0, "CompactdDue", { link = "DiagnosticWarn", default = true })
  vim.api.nvim_set_hl(0, "CompactdOver", { link = "DiagnosticError", default = true })
  vim.api.nvim_set_hl(0, "CompactdHead", { link = "Title", default = true })
  vim.api.nvim_set_hl(0, "CompactdFaint", { link = "Comment", default = true })
  vim.api.nvim_set_hl(0, "CompactdSummary", { link = "Special", default = true })
  vim.api.nvim_set_hl(0, "CompactdPinned", { link = "DiagnosticInfo", default = true })
end

return M
