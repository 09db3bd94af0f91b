--- The context of a session, to be read: every entry with its size; a summary opens to its originals.
local daemon = require("compactd.daemon")
local entries = require("compactd.entries")
local gauge = require("compactd.gauge")
local sessions = require("compactd.sessions")
local text = require("compactd.text")
local window = require("compactd.window")

local M = {}

---@class compactd.View
---@field id string
---@field buffer integer
---@field page compactd.Page
---@field shown compactd.Shown
---@field originals table<string, compactd.Original[]> By compaction, those that are opened.
---@field listener function
---@field is_asking boolean
---@field is_stale boolean Something changed while it was asked for.

---@class compactd.Shown What the daemon said of the context.
---@field entries compactd.HistoryEntry[] In the context's order, as far as they are here.
---@field total integer
---@field summarised integer Messages that summaries stand for.

---@type table<integer, compactd.View> By buffer.
local views = {}

local KEYS = "Enter open · Tab fold · p pin · c compact · u undo · r redo · / search · w work · q close"
--- Events after which the context may be another one although its size is the same.
local RELOADS = { compaction_end = true, prune_end = true, session_changed = true, writer_changed = true, resumed = true }
local FIRST = 200 -- entries that fill any screen; the others come when these are shown
local PAGE = 400 -- little enough that a key between two of them does not wait

--- Adds an entry: its line, its text folded behind it, the originals of a summary that is open.
---@param page compactd.Page
---@param entry compactd.HistoryEntry
---@param originals table<string, compactd.Original[]>
---@param width integer
local function add_entry(page, entry, originals, width)
  local id = entry.compaction and entry.compaction.compaction_id
  local target = { entry = entry, compaction_id = id }
  entries.add(page, entries.head(entry, width), ">1", target, entries.group(entry))
  if originals[id or ""] == nil then
    entries.add_body(page, entries.said(entry), "       ", 1, target, entries.MOST_LINES)
  end
  for _, original in ipairs(originals[id or ""] or {}) do
    local behind = { original = original }
    local said = text.message(original.message)
    local role = text.clean(tostring(original.message.role))
    local head = ("    ┆ %-6s %-9s %s"):format(text.clean(original.entry_id), role, text.line(said, width - 24))
    entries.add(page, head, ">2", behind, "CompactdFaint")
    entries.add_body(page, said, "    ┆        ", 2, behind, 10)
  end
end

--- What the buffer shows, from what the daemon said.
---@param session compactd.Open
---@param shown compactd.Shown
---@param originals table<string, compactd.Original[]>
---@param width integer
---@return compactd.Page
function M.render(session, shown, originals, width)
  local page = entries.page()
  for index, line in ipairs(gauge.long(session)) do
    entries.add(page, line, 0, nil, index == 1 and "CompactdHead" or nil)
  end
  entries.add(page, "")
  local title = ("In the context: %s"):format(text.count(shown.total, "entry"):gsub("entrys$", "entries"))
  if shown.summarised > 0 then
    title = title .. (" · summarised: %s (Enter on a summary opens them)"):format(text.count(shown.summarised, "message"))
  end
  entries.add(page, title, 0, nil, "CompactdHead")
  for _, entry in ipairs(shown.entries) do
    add_entry(page, entry, originals, width)
  end
  if shown.total == 0 then
    entries.add(page, "Nothing yet. :Compactd chat begins a conversation.", 0, nil, "CompactdFaint")
  end
  return page
end

--- The fold level of a line, for `foldexpr`.
---@param line integer
---@return integer|string
function M.fold(line)
  local view = views[vim.api.nvim_get_current_buf()]
  return view and view.page.levels[line] or 0
end

--- A closed fold shows its first line as it is.
---@return string
function M.foldtext()
  return vim.fn.getline(vim.v.foldstart)
end

local function width_of(view)
  local each = vim.fn.win_findbuf(view.buffer)[1]
  return each and vim.api.nvim_win_get_width(each) or window.width()
end

--- What a line is about, by a name that it has in the next drawing, too.
---@param view compactd.View
---@param line integer
---@return string?
local function name_of(view, line)
  local target = view.page.targets[line]
  local entry = target and (target.original or target.entry)
  return entry and tostring(view.page.levels[line]):match("^>") and entry.entry_id or nil
end

--- The folds that are open in a window.
---@param view compactd.View
---@return table<string, boolean>
local function unfolded(view)
  local open = {}
  for line = 1, #view.page.lines do
    local name = name_of(view, line)
    if name and vim.fn.foldlevel(line) > 0 and vim.fn.foldclosed(line) == -1 then
      open[name] = true
    end
  end
  return open
end

--- Opens the folds that were open before the buffer was filled again, and no others.
---@param view compactd.View
---@param open table<string, boolean>
local function unfold(view, open)
  vim.cmd("silent! normal! zM") -- else some folds are open by their old place
  if next(open) == nil then
    return
  end
  for line = 1, #view.page.lines do
    if open[name_of(view, line) or ""] then
      vim.cmd(("silent! %dfoldopen"):format(line))
    end
  end
end

--- Shows what the daemon said; what the user has opened stays open.
local function draw(view)
  local session = sessions.open[view.id]
  if session == nil or not vim.api.nvim_buf_is_valid(view.buffer) then
    return
  end
  local saved, open = {}, {}
  for _, each in ipairs(vim.fn.win_findbuf(view.buffer)) do
    saved[each] = vim.api.nvim_win_get_cursor(each)
    open[each] = vim.api.nvim_win_call(each, function()
      return unfolded(view)
    end)
  end
  view.page = M.render(session, view.shown, view.originals, width_of(view))
  window.fill(view.buffer, view.page.lines)
  entries.decorate(view.buffer, view.page)
  for each, cursor in pairs(saved) do
    vim.api.nvim_win_call(each, function()
      unfold(view, open[each])
    end)
    pcall(vim.api.nvim_win_set_cursor, each, { math.min(cursor[1], #view.page.lines), cursor[2] })
  end
end

--- Puts further entries below those that are shown.
local function extend(view, more)
  if not vim.api.nvim_buf_is_valid(view.buffer) then
    return
  end
  local lines, marks, width = #view.page.lines, #view.page.marks, width_of(view)
  for _, entry in ipairs(more) do
    add_entry(view.page, entry, view.originals, width)
  end
  vim.list_extend(view.shown.entries, more)
  window.append(view.buffer, vim.list_slice(view.page.lines, lines + 1))
  entries.decorate(view.buffer, view.page, marks)
end

--- Asks for the context page by page; `got` is called with each page's entries, at last with nil.
---@param view compactd.View
---@param limit integer
---@param from? string
---@param got fun(result?: compactd.HistoryResult)
local function ask(view, limit, from, got)
  local asked = { session_id = view.id, in_context = true, limit = limit, from = from }
  daemon.request("session/history", asked, function(failure, result)
    if failure then
      vim.notify("compactd: " .. tostring(failure.message), vim.log.levels.ERROR)
      return got(nil)
    end
    got(result)
    if result.next then
      ask(view, PAGE, result.next, got)
    else
      got(nil)
    end
  end)
end

local load

local function loaded(view)
  view.is_asking = false
  if view.is_stale then
    view.is_stale = false
    load(view)
  end
end

--- Shows what is there as soon as a screen of it came; `callback` is called then.
local function open_first(view, callback)
  view.is_asking = true
  local is_first = true
  ask(view, FIRST, nil, function(result)
    if result == nil then
      return loaded(view)
    elseif not is_first then
      return extend(view, result.entries)
    end
    is_first = false
    view.shown = { entries = result.entries, total = result.total, summarised = result.summarised }
    draw(view)
    callback()
  end)
end

--- Shows what is there now, all at once: nothing moves under the cursor.
load = function(view)
  if view.is_asking then
    view.is_stale = true
    return
  end
  view.is_asking = true
  local shown
  ask(view, PAGE, nil, function(result)
    if result then
      shown = shown or { entries = {}, total = result.total, summarised = result.summarised }
      vim.list_extend(shown.entries, result.entries)
      return
    elseif shown then
      view.shown = shown
      draw(view)
    end
    loaded(view)
  end)
end

local function fold_in(each)
  vim.wo[each].foldmethod = "expr"
  vim.wo[each].foldexpr = "v:lua.require'compactd.context'.fold(v:lnum)"
  vim.wo[each].foldtext = "v:lua.require'compactd.context'.foldtext()"
  vim.wo[each].foldlevel = 0
  vim.wo[each].foldenable = true
end

local function target_here(view)
  return view.page.targets[vim.api.nvim_win_get_cursor(0)[1]]
end

local function open_here(view)
  local target = target_here(view)
  if target == nil then
    return
  elseif target.original then
    local original = target.original
    local lines = vim.split(text.clean(text.message(original.message)), "\n", { plain = true })
    window.read(view.id .. "/" .. original.entry_id, original.entry_id .. " as it was appended", lines)
  elseif target.compaction_id == nil then
    local lines = vim.split(text.clean(entries.said(target.entry)), "\n", { plain = true })
    window.read(view.id .. "/" .. target.entry.entry_id, target.entry.entry_id, lines)
  elseif view.originals[target.compaction_id] then
    view.originals[target.compaction_id] = nil
    draw(view)
  else
    local asked = { session_id = view.id, compaction_id = target.compaction_id }
    daemon.request("session/expand", asked, function(failure, result)
      if failure then
        vim.notify("compactd: " .. tostring(failure.message), vim.log.levels.ERROR)
        return
      end
      view.originals[target.compaction_id] = result.entries
      draw(view)
      local first = result.entries[1]
      for line = 1, #view.page.lines do
        if first and vim.tbl_get(view.page.targets, line, "original") == first then
          pcall(vim.api.nvim_win_set_cursor, 0, { line, 0 })
          vim.cmd("silent! normal! zvzz")
          break
        end
      end
    end)
  end
end

local function pin_here(view)
  local target = target_here(view)
  local entry = target and target.entry
  if entry == nil or entry.compaction then
    return
  end
  local asked = { session_id = view.id, entry_ids = { entry.entry_id }, pinned = not entry.pinned }
  sessions.request("session/pin", asked, function(failure)
    if failure then
      vim.notify("compactd: " .. tostring(failure.message), vim.log.levels.ERROR)
    else
      load(view)
    end
  end)
end

local function map(view)
  local function key(lhs, what, action)
    vim.keymap.set("n", lhs, action, { buffer = view.buffer, nowait = true, silent = true, desc = what })
  end
  local function command(words)
    return function()
      require("compactd.command").run({ fargs = words, bang = false })
    end
  end
  key("<CR>", "Open what is here", function()
    open_here(view)
  end)
  key("<Tab>", "Fold or unfold", "za")
  key("p", "Pin or let go", function()
    pin_here(view)
  end)
  key("c", "Compact, after a preview", command({ "compact" }))
  key("u", "Undo the last compaction", command({ "undo" }))
  key("r", "Redo it", command({ "redo" }))
  key("w", "Where the work stands", command({ "work" }))
  key("/", "Search in all that was ever said", command({ "search" }))
end

--- Shows one message whole, also one that was summarised.
---@param session_id string
---@param entry_id string
function M.read(session_id, entry_id)
  local asked = { session_id = session_id, entry_ids = { entry_id } }
  daemon.request("session/expand", asked, function(failure, result)
    if failure then
      return vim.notify("compactd: " .. text.clean(tostring(failure.message)), vim.log.levels.ERROR)
    end
    local original = result.entries[1]
    local said = original and text.message(original.message) or ""
    local title = original and ("%s · %s"):format(original.entry_id, original.message.role) or entry_id
    window.read(session_id .. "/" .. entry_id, title, vim.split(text.clean(said), "\n", { plain = true }))
  end)
end

--- Opens the context of a session.
---@param session compactd.Open
function M.open(session)
  local buffer = window.buffer(session.id .. "/context", "compactd-context")
  local view = views[buffer]
  if view == nil then
    view = { id = session.id, buffer = buffer, page = entries.page(), originals = {} }
    view.shown = { entries = {}, total = 0, summarised = 0 }
    views[buffer] = view
    map(view)
    local last = nil
    view.listener = function(_, event)
      local shown = #vim.fn.win_findbuf(buffer) > 0
      if RELOADS[event.type] then
        last = nil
      end
      local stamp = ("%s/%s"):format(session.usage.epoch, session.message_count)
      local now = sessions.open[session.id]
      stamp = now and ("%s/%s"):format(now.usage.epoch, now.usage.current_context_tokens) or stamp
      if shown and event.type == "changed" and stamp ~= last then
        last = stamp
        load(view)
      end
    end
    sessions.listen(session.id, view.listener)
    vim.api.nvim_create_autocmd("BufWipeout", {
      buffer = buffer,
      callback = function()
        sessions.unlisten(session.id, view.listener)
        views[buffer] = nil
      end,
    })
  end
  local function float()
    local each = window.float(buffer, "context", KEYS)
    fold_in(each)
    vim.api.nvim_win_set_cursor(each, { math.min(7, #view.page.lines), 0 })
  end
  if view.is_asking then
    float()
    view.is_stale = true
  else
    open_first(view, float)
  end
end

return M
