--- The sessions this Neovim has open, as `agent/event` and `agent/state` tell them.
local config = require("compactd.config")
local daemon = require("compactd.daemon")
local protocol = require("compactd.protocol")
local text = require("compactd.text")

local M = {}

---@class compactd.Open A session that is open here.
---@field id string
---@field title string
---@field model? string
---@field usage compactd.TokenUsage
---@field message_count integer
---@field read_only boolean It is only looked at here: `request` takes it over before the first change.
---@field held? boolean Another program has it open for writing; nil before the daemon said so.
---@field status string As in `agent/state`.
---@field compacting? {fraction: number, phase: string}
---@field seq integer
---@field cancel? fun() Takes the compaction back that was asked for here and runs.
---@field last? compactd.CompactionResult

---@type table<string, compactd.Open>
M.open = {}
---@type string? The session that commands mean.
M.current_id = nil

local listeners = {} ---@type table<string, fun(id: string, event: table)[]>
local changed = {} ---@type table<string, boolean>
local stale = {} ---@type table<string, boolean> Those of which the daemon's own account is asked for.
local is_scheduled = false

--- Calls `listener` with each event of a session, at once and in order; deltas of one screen come as one.
---@param id string
---@param listener fun(id: string, event: table)
function M.listen(id, listener)
  listeners[id] = listeners[id] or {}
  table.insert(listeners[id], listener)
end

---@param listener function
function M.unlisten(id, listener)
  listeners[id] = vim.tbl_filter(function(each)
    return each ~= listener
  end, listeners[id] or {})
end

local function fire(pattern, data)
  vim.api.nvim_exec_autocmds("User", { pattern = pattern, modeline = false, data = data })
end

local pending = {} ---@type table<string, table> Deltas by session, not yet told.

local function hand_on(id, event)
  for _, listener in ipairs(listeners[id] or {}) do
    local ok, problem = pcall(listener, id, event)
    if not ok then
      require("compactd.log").add("life", "a view failed: " .. tostring(problem))
    end
  end
end

local function flush_deltas(id)
  local delta = pending[id]
  pending[id] = nil
  if delta then
    hand_on(id, { session_id = id, type = delta.type, delta = table.concat(delta.parts) })
  end
end

local function flush()
  is_scheduled = false
  for id in pairs(pending) do
    flush_deltas(id)
  end
  local ids = changed
  changed = {}
  for id in pairs(ids) do
    local session = M.open[id]
    if session then
      fire("CompactdUsage", { session_id = id, usage = session.usage })
      hand_on(id, { session_id = id, type = "changed" })
    end
  end
  pcall(vim.cmd.redrawstatus, { bang = true })
  local asked = stale
  stale = {}
  for id in pairs(daemon.status == "ready" and asked or {}) do
    M.refresh(id)
  end
end

local function touch(id)
  if id then
    changed[id] = true
  end
  if not is_scheduled then
    is_scheduled = true
    vim.defer_fn(flush, config.values.coalesce_ms)
  end
end

--- Asks how a session stands; what comes is on the screen with the next flush.
---@param id string
function M.refresh(id)
  daemon.request("agent/state", { session_id = id }, function(failure, state)
    local session = M.open[id]
    if failure or session == nil then
      return
    end
    session.title = state.title or session.title
    session.model = state.model
    session.usage = state.token_usage
    session.message_count = state.message_count
    session.status = state.status
    session.last = state.compaction.last
    local was_held = session.held
    -- What another program does with its session is `unknown`, or `compacting`.
    session.held = session.read_only and state.status ~= "idle"
    if session.held and was_held == nil then
      vim.notify("compactd: open in another program; here it can be read and followed", vim.log.levels.WARN)
    end
    touch(id)
  end)
end

local function say_compacted(result)
  local said = ("✓ Compacted %s  Tokens: %s → %s (saved %s)"):format(
    text.count(result.messages_removed, "message"),
    text.number(result.tokens_before),
    text.number(result.tokens_after),
    text.number(result.tokens_saved)
  )
  require("compactd.log").add("life", said)
  vim.api.nvim_echo({ { said } }, true, {})
end

---@type table<string, fun(session: compactd.Open, event: table)>
local ACTS = {
  agent_start = function(session)
    session.status = "running"
  end,
  message_start = function(session)
    session.status = "streaming"
  end,
  tool_execution_start = function(session)
    session.status = "executing_tools"
  end,
  agent_end = function(session, event)
    session.status = "idle"
    session.usage = event.usage or session.usage
    stale[session.id] = true -- it may have a title now
  end,
  error = function(session)
    session.status = "idle"
  end,
  usage_update = function(session, event)
    session.usage = event.usage
    stale[session.id] = true
  end,
  compaction_start = function(session)
    session.compacting = { fraction = 0, phase = "prepare" }
  end,
  compaction_progress = function(session, event)
    session.compacting = { fraction = event.fraction, phase = event.phase }
  end,
  compaction_end = function(session, event)
    session.compacting = nil
    if event.status == "completed" and event.result then
      session.last = event.result
      say_compacted(event.result)
    end
    M.refresh(session.id)
  end,
  model_changed = function(session, event)
    session.model = event.model
  end,
  session_changed = function(session)
    stale[session.id] = true
  end,
  writer_changed = function(session, event)
    session.read_only = event.owner ~= "this"
    session.held = event.owner == "other"
    session.compacting = nil -- the one of a program that ended has no end
    stale[session.id] = true
  end,
  events_dropped = function(session)
    -- More was said than this editor read: what is stored is read again.
    daemon.request("session/subscribe", { session_id = session.id }, function(failure, result)
      if not failure then
        session.seq = result.seq
        M.refresh(session.id)
        hand_on(session.id, { session_id = session.id, type = "resumed" })
      end
    end)
  end,
  session_closed = function(session, event)
    if event.reason == "deleted" then
      local said = ("%s was deleted by another program"):format(text.line(session.title, 40))
      require("compactd.log").add("life", said)
      vim.api.nvim_echo({ { "compactd: " .. said } }, true, {})
    end
    M.open[session.id] = nil
    if M.current_id == session.id then
      M.current_id = nil
    end
  end,
}

local function on_event(event)
  local session = M.open[event.session_id or ""]
  if session == nil then
    return
  end
  if event.seq and event.seq > session.seq + 1 and session.seq > 0 then
    M.refresh(session.id) -- something was left out while we did not read
  end
  session.seq = event.seq or session.seq
  if event.type == "message_delta" or event.type == "thinking_delta" then
    local delta = pending[session.id]
    if delta and delta.type ~= event.type then
      flush_deltas(session.id)
      delta = nil
    end
    delta = delta or { type = event.type, parts = {} }
    pending[session.id] = delta
    table.insert(delta.parts, event.delta)
    return touch(nil)
  end
  flush_deltas(session.id)
  local act = ACTS[event.type]
  if act then
    act(session, event)
  end
  if event.type ~= "compaction_progress" then
    fire("CompactdEvent", event)
  end
  if event.type == "compaction_end" and event.status == "completed" then
    fire("CompactdCompacted", event)
  end
  hand_on(session.id, event)
  touch(session.id)
end

--- Whether the conversation fits: `over` what the model takes, `due` for a compaction, or it `fits`.
---@param session compactd.Open
---@return "fits"|"due"|"over"
function M.kind(session)
  return session.usage.decision or "fits"
end

---@return compactd.Open?
function M.current()
  return M.current_id and M.open[M.current_id] or nil
end

local function tools()
  return require("compactd.tools").SCHEMAS
end

--- Takes over what `session/start` answered. A caller that has the session's table keeps it.
---@param result compactd.StartResult
---@return compactd.Open
local function take_in(result)
  local session = M.open[result.session_id] or { id = result.session_id }
  M.open[session.id] = session
  session.title = result.title or session.id
  session.model = result.model
  session.usage = result.token_usage
  session.message_count = result.message_count
  session.read_only = result.read_only
  session.status = "idle"
  session.seq = result.seq
  for _, warning in ipairs(result.warnings or {}) do
    require("compactd.log").add("daemon", warning)
  end
  M.refresh(session.id)
  touch(session.id)
  return session
end

local function keep(result)
  take_in(result).held = nil
  fire("CompactdSession", { session_id = result.session_id, resumed = result.resumed })
end

--- Who this client is. Other clients of a shared daemon show the name.
M.CLIENT = { name = "compactd.nvim", version = require("compactd").VERSION }

--- What changes a session: its lock is taken before.
local WRITES = {
  ["agent/prompt"] = true,
  ["model/set"] = true,
  ["prompt/drop"] = true,
  ["session/append"] = true,
  ["session/branch"] = true,
  ["session/compact"] = true,
  ["session/configure"] = true,
  ["session/delete"] = true,
  ["session/pin"] = true,
  ["session/prune"] = true,
  ["session/redact"] = true,
  ["session/redo"] = true,
  ["session/undo"] = true,
  ["turn/begin"] = true,
  ["turn/end"] = true,
  ["turn/error"] = true,
}

--- Takes a session that is only looked at for writing. It stays read-only if another program has it: then the
--- daemon refuses the change itself, and says which program that is.
---@param id string
---@param callback fun(failure?: table)
function M.take(id, callback)
  local session = M.open[id]
  if session == nil or not session.read_only then
    return callback(nil)
  end
  daemon.request("session/start", { session_id = id, client = M.CLIENT }, function(failure, result)
    if failure then
      return callback(failure)
    end
    take_in(result).held = result.read_only
    callback(nil)
  end)
end

local function name_holder(failure)
  local pid, name = vim.tbl_get(failure, "data", "pid"), vim.tbl_get(failure, "data", "name")
  local which = pid and (" (%sprocess %s)"):format(name and text.clean(name) .. ", " or "", pid) or ""
  return vim.tbl_extend("force", failure, {
    message = ("open in another program%s: close it there first"):format(which),
  })
end

--- Asks the daemon about a session. What changes the session takes it for writing first: the only place that does.
---@param method string
---@param params table
---@param callback fun(failure?: table, result?: any)
---@param started? fun(cancel: fun()) Called when it was sent, with what takes it back.
function M.request(method, params, callback, started)
  if not WRITES[method] or params.dry_run then
    return daemon.request(method, params, callback, started)
  end
  M.take(params.session_id, function(problem)
    if problem then
      return callback(problem)
    end
    daemon.request(method, params, function(failure, result)
      if failure and failure.code == protocol.errors.SessionLocked then
        failure = name_holder(failure)
      end
      callback(failure, result)
    end, started)
  end)
end

--- Opens a session: a new one, or the stored one that `given.session_id` names. A stored one is looked at, without
--- its lock, unless `given.writes`.
---@param given {session_id?: string, title?: string, writes?: boolean}
---@param callback fun(failure?: table, session?: compactd.Open)
function M.start(given, callback)
  local params = {
    session_id = given.session_id,
    title = given.session_id == nil and given.title or nil,
    read_only = given.session_id ~= nil and not given.writes or nil,
    client = M.CLIENT,
  }
  if given.session_id == nil then
    params.model = config.values.model
    params.system_prompt = config.values.system_prompt
    params.working_dir = vim.uv.cwd()
    params.tools = tools()
  end
  daemon.request("session/start", params, function(failure, result)
    if failure then
      return callback(failure)
    end
    M.current_id = result.session_id
    keep(result)
    callback(nil, M.open[result.session_id])
  end)
end

--- The session that commands mean; where there is none, a new one.
---@param callback fun(failure?: table, session?: compactd.Open)
function M.with(callback)
  local session = M.current()
  if session then
    return callback(nil, session)
  end
  M.start({}, callback)
end

--- Opens every session again that a daemon before this one had, to look or to write as before.
local function resume(how)
  local ids = vim.tbl_keys(M.open)
  local current = M.current_id
  if #ids == 0 then
    if how then
      vim.notify("compactd: the daemon ended with " .. how .. " and was started again.", vim.log.levels.WARN)
    end
    return
  end
  local left, lost = #ids, {}
  for _, id in ipairs(ids) do
    local before = M.open[id]
    local params = { session_id = id, read_only = before.read_only or nil, client = M.CLIENT }
    daemon.request("session/start", params, function(failure, result)
      left = left - 1
      if failure and failure.code == daemon.GONE then
        return -- it died once more: the next one opens them
      elseif failure then
        lost[#lost + 1] = text.line(before.title, 40) .. ": " .. tostring(failure.message)
        M.open[id] = nil
      else
        keep(result)
        hand_on(id, { session_id = id, type = "resumed" })
      end
      if left == 0 then
        M.current_id = M.open[current or ""] and current or next(M.open)
        if how or #lost > 0 then
          local said = ("the daemon %s and was started again; %s resumed."):format(
            how and ("ended with " .. how) or "was ended",
            text.count(#ids - #lost, "session")
          )
          vim.notify("compactd: " .. table.concat({ said, unpack(lost) }, "\n"), vim.log.levels.WARN)
        end
      end
    end)
  end
end

daemon.hooks.event = on_event
daemon.hooks.ready = function(again, how)
  if again then
    resume(how)
  end
end
daemon.hooks.gone = function()
  for id, session in pairs(M.open) do
    session.status = "idle"
    session.compacting = nil
    pending[id] = nil
    hand_on(id, { session_id = id, type = "gone" })
    touch(id)
  end
end
daemon.hooks.request = function(method, params, answer)
  if method == "tool/execute" then
    require("compactd.tools").execute(params, answer)
  else
    answer(vim.empty_dict())
  end
end

return M
