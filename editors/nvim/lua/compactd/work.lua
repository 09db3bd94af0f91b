--- Where the work of a session stands, to be read: goal, plan, changed files, checks, errors, decisions.
local daemon = require("compactd.daemon")
local entries = require("compactd.entries")
local text = require("compactd.text")
local window = require("compactd.window")

local M = {}

---@class compactd.WorkRow One line about the work.
---@field label? string What the row is about; nil if it is about the same as the row before.
---@field lead? string Words before the text that are never shortened.
---@field text string
---@field note? string Words after the text that are never shortened.
---@field entry_id? string The message that says so.
---@field group? string Highlight group.

local KEYS = "Enter opens the message · q close"
local MOST = { constraints = 3, tasks = 8, files = 8, checks = 5, errors = 5, attempts = 2, decisions = 3 }
local STATUS = { open = "open", in_progress = "in progress", done = "done", dropped = "dropped" }
local CHECKS = { test = "tests", build = "build", lint = "lint", types = "type check", other = "check" }
local OUTCOMES = { passed = "passed", failed = "failed", unknown = "ended, result unknown" }

local function plain_row(item)
  return { text = item.text, entry_id = item.entry_id }
end

local function file_row(change)
  local kind = change.kind == "edited" and text.count(change.edits, "edit") or change.kind
  local committed = change.committed and "committed" or "uncommitted"
  local checked = change.checked and "checked" or "unchecked"
  local note = table.concat({ kind, committed, checked }, ", ")
  return { text = change.path, note = note, entry_id = change.last_entry_id }
end

local function check_row(check)
  return {
    lead = ("%s %s: "):format(CHECKS[check.kind] or check.kind, OUTCOMES[check.outcome] or check.outcome),
    text = check.command,
    note = check.stale and "files changed since" or nil,
    entry_id = check.entry_id,
  }
end

local function error_row(failure)
  return { text = ("%s (%s)"):format(failure.text, failure.command), entry_id = failure.entry_id, group = "CompactdOver" }
end

local function decision_row(decision)
  local was = decision.was and (" (before: %s)"):format(decision.was) or ""
  return { text = decision.text .. was, entry_id = decision.entry_id }
end

local function task_row(task)
  return { lead = ("%-13s"):format(STATUS[task.status] or task.status), text = task.text, entry_id = task.entry_id }
end

--- The rows of checks. Two checks of one call may have the same row: it is shown once.
local function check_rows(checks)
  local rows = {}
  for _, check in ipairs(checks) do
    local row = check_row(check)
    if not vim.deep_equal(row, rows[#rows]) then
      rows[#rows + 1] = row
    end
  end
  return rows
end

--- The last `most` of `items` as rows; if there are more, a row before them says how many. Without `row_of`, they are rows.
local function newest(items, most, noun, row_of)
  local last = vim.list_slice(items, math.max(1, #items - most + 1))
  local rows = row_of and vim.tbl_map(row_of, last) or last
  if #items > most then
    table.insert(rows, 1, { text = ("%s, the last %d:"):format(text.count(#items, noun), most) })
  end
  return rows
end

--- How many tasks are done, and the tasks in their order: of too many, the first unfinished and the last finished.
local function plan_rows(plan)
  if #plan == 0 then
    return {}
  end
  local done, finished, is_shown, count = 0, {}, {}, 0
  for at, task in ipairs(plan) do
    done = done + (task.status == "done" and 1 or 0)
    if task.status == "done" or task.status == "dropped" then
      finished[#finished + 1] = at
    elseif count < MOST.tasks then
      is_shown[at], count = true, count + 1
    end
  end
  for at = #finished, 1, -1 do
    if count < MOST.tasks then
      is_shown[finished[at]], count = true, count + 1
    end
  end
  local some = count < #plan and (", %d of them shown"):format(count) or ""
  local rows = { { text = ("%s of %s done%s"):format(text.number(done), text.count(#plan, "task"), some) } }
  for at, task in ipairs(plan) do
    if is_shown[at] then
      rows[#rows + 1] = task_row(task)
    end
  end
  return rows
end

--- The rows for the state of the work, without the kinds that are empty. Of each kind the newest are shown.
---@param work compactd.Work
---@return compactd.WorkRow[]
function M.rows(work)
  local kinds = {
    { "goal", work.goal and { { text = work.goal } } or {} },
    { "request", work.request and work.request ~= work.goal and { { text = work.request } } or {} },
    { "constraints", newest(work.constraints, MOST.constraints, "constraint", plain_row) },
    { "plan", plan_rows(work.plan) },
    { "files", newest(work.changes, MOST.files, "changed file", file_row) },
    { "checks", newest(check_rows(work.checks), MOST.checks, "check") },
    { "open errors", newest(work.open_errors, MOST.errors, "open error", error_row) },
    { "failed", newest(work.failed_attempts, MOST.attempts, "failed attempt", plain_row) },
    { "decisions", newest(work.decisions, MOST.decisions, "decision", decision_row) },
    { "now", work.now and { plain_row(work.now) } or {} },
  }
  local all = {}
  for _, kind in ipairs(kinds) do
    for at, row in ipairs(kind[2]) do
      row.label = at == 1 and kind[1] or nil
      all[#all + 1] = row
    end
  end
  return all
end

--- What the buffer shows: one line for each row.
---@param work compactd.Work
---@param width integer
---@return compactd.Page
function M.render(work, width)
  local page = entries.page()
  for _, row in ipairs(M.rows(work)) do
    local tail = (row.note and "   " .. row.note or "") .. (row.entry_id and (" [%s]"):format(text.clean(row.entry_id)) or "")
    local head = ("%-13s%s"):format(row.label or "", row.lead or "")
    local said = text.line(row.text:gsub("%s*\n%s*", " "), math.max(12, width - #head - #tail))
    local target = row.entry_id and { entry_id = row.entry_id } or nil
    entries.add(page, head .. said .. tail, 0, target, row.group)
  end
  if #page.lines == 0 then
    entries.add(page, "Nothing yet: no message of this session says what is to be done.", 0, nil, "CompactdFaint")
  end
  return page
end

--- Asks where the work of a session stands, and shows it.
---@param session compactd.Open
function M.open(session)
  daemon.request("agent/state", { session_id = session.id, work = true }, function(failure, state)
    if failure then
      return vim.notify("compactd: " .. text.clean(tostring(failure.message)), vim.log.levels.ERROR)
    elseif state.work == nil then
      return vim.notify("compactd: this daemon is too old to say where the work stands", vim.log.levels.WARN)
    end
    local buffer = window.buffer(session.id .. "/work", "compactd-work")
    local page = M.render(state.work, window.width())
    window.fill(buffer, page.lines)
    entries.decorate(buffer, page)
    window.float(buffer, "work", KEYS)
    vim.keymap.set("n", "<CR>", function()
      local target = page.targets[vim.api.nvim_win_get_cursor(0)[1]]
      if target then
        require("compactd.context").read(session.id, target.entry_id)
      end
    end, { buffer = buffer, nowait = true, silent = true, desc = "Open the message" })
  end)
end

return M
