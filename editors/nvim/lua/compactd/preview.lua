--- A compaction before it is done: what goes, what stays, in tokens. Then done, or not.
local daemon = require("compactd.daemon")
local entries = require("compactd.entries")
local protocol = require("compactd.protocol")
local sessions = require("compactd.sessions")
local text = require("compactd.text")
local window = require("compactd.window")

local M = {}

---@class compactd.Wish What a person wants of a compaction.
---@field focus? string
---@field keep? integer Messages kept word for word.

---@param session compactd.Open
---@param wish compactd.Wish
---@return table params
function M.params(session, wish)
  return { session_id = session.id, keep_messages = wish.keep, instructions = wish.focus }
end

--- What the preview shows.
---@param plan compactd.CompactionResult Of a dry run.
---@param history compactd.HistoryEntry[] Of the context.
---@param wish compactd.Wish
---@param width integer
---@return compactd.Page
function M.render(plan, history, wish, width)
  local page = entries.page()
  local pinned = {}
  for _, id in ipairs(plan.pinned_entry_ids or {}) do
    pinned[id] = true
  end
  local groups = { goes = {}, pinned = {}, stays = {} }
  local is_kept = plan.messages_removed == 0
  for _, entry in ipairs(history) do
    is_kept = is_kept or entry.entry_id == plan.first_kept_entry_id
    local group = pinned[entry.entry_id] and "pinned" or is_kept and "stays" or "goes"
    table.insert(groups[group], entry)
  end
  entries.add(
    page,
    ("Tokens: %s → %s (saves %s)"):format(
      text.number(plan.tokens_before),
      text.number(plan.tokens_after),
      text.number(plan.tokens_saved)
    ),
    0,
    nil,
    "CompactdHead"
  )
  local how = plan.strategy .. (plan.model and (", by " .. text.clean(plan.model)) or ", no model")
  if type(plan.cost) == "number" then
    how = how .. (" · $%.4f"):format(plan.cost)
  end
  entries.add(page, "how       " .. how)
  entries.add(page, ("messages  %d → %d"):format(plan.messages_before, plan.messages_after))
  entries.add(page, "focus     " .. (wish.focus and text.line(wish.focus, width - 12) or "none (f gives one)"))
  entries.add(page, "")
  local function section(title, list, group)
    entries.add(page, ("%s (%d)"):format(title, #list), ">1", nil, group)
    for _, entry in ipairs(list) do
      local target = { entry = entry }
      entries.add(page, "  " .. entries.head(entry, width - 2), ">2", target)
      entries.add_body(page, entries.said(entry), "         ", 2, target, 10)
    end
  end
  section("summarised: goes, can be found, opened and undone", groups.goes, "CompactdFaint")
  section("pinned: stays", groups.pinned, "CompactdPinned")
  section("kept: stays word for word", groups.stays, "CompactdSummary")
  return page
end

local pages = {} ---@type table<integer, compactd.Page>

---@param line integer
function M.fold(line)
  local page = pages[vim.api.nvim_get_current_buf()]
  return page and page.levels[line] or 0
end

local function failed(failure)
  vim.notify("compactd: " .. tostring(failure.message), vim.log.levels.ERROR)
end

--- Compacts. What comes of it is said in the status line by the event.
---@param session compactd.Open
---@param wish compactd.Wish
function M.compact(session, wish)
  local function ended(failure, result)
    session.cancel = nil
    if failure and failure.code == protocol.errors.Cancelled then
      vim.api.nvim_echo({ { "compactd: the compaction was cancelled; nothing was changed" } }, true, {})
    elseif failure then
      failed(failure)
    elseif not result.compacted then
      vim.api.nvim_echo({ { "No compaction needed: " .. text.clean(result.reason) } }, true, {})
    end
  end
  sessions.request("session/compact", M.params(session, wish), ended, function(cancel)
    session.cancel = cancel
  end)
end

local function show(session, wish, plan, history)
  local buffer = window.buffer(session.id .. "/preview", "compactd-preview")
  local page = M.render(plan, history, wish, window.width())
  pages[buffer] = page
  window.fill(buffer, page.lines)
  entries.decorate(buffer, page)
  local each = window.float(buffer, "compact?", "Enter compact · + keep more · - keep less · f focus · q leave it")
  vim.wo[each].foldmethod = "expr"
  vim.wo[each].foldexpr = "v:lua.require'compactd.preview'.fold(v:lnum)"
  vim.wo[each].foldtext = "v:lua.require'compactd.context'.foldtext()"
  vim.wo[each].foldlevel = 1
  local function key(lhs, what, action)
    vim.keymap.set("n", lhs, action, { buffer = buffer, nowait = true, silent = true, desc = what })
  end
  local function again(changes)
    M.open(session, vim.tbl_extend("force", wish, changes))
  end
  key("<CR>", "Compact", function()
    pcall(vim.api.nvim_win_close, each, true)
    M.compact(session, wish)
  end)
  key("<Tab>", "Fold or unfold", "za")
  key("+", "Keep more", function()
    again({ keep = plan.kept_messages + 2 })
  end)
  key("-", "Keep less", function()
    again({ keep = math.max(1, plan.kept_messages - 2) })
  end)
  key("f", "Focus", function()
    vim.ui.input({ prompt = "Focus of the summary: ", default = wish.focus }, function(focus)
      if focus then
        again({ focus = vim.trim(focus) ~= "" and focus or nil })
      end
    end)
  end)
end

--- Shows what a compaction would do, and does it on Enter.
---@param session compactd.Open
---@param wish compactd.Wish
function M.open(session, wish)
  local params = M.params(session, wish)
  params.dry_run = true
  daemon.request("session/compact", params, function(failure, plan)
    if failure then
      return failed(failure)
    elseif not plan.compacted then
      vim.api.nvim_echo({ { "No compaction needed: " .. text.clean(plan.reason) } }, true, {})
      return
    end
    daemon.request("session/history", { session_id = session.id, in_context = true }, function(problem, result)
      if problem then
        return failed(problem)
      end
      show(sessions.open[session.id] or session, wish, plan, result.entries)
    end)
  end)
end

return M
