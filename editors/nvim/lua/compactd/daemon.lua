--- The one daemon of this Neovim: found, started when it is first needed, started again where it died.
local config = require("compactd.config")
local finding = require("compactd.finding")
local log = require("compactd.log")
local protocol = require("compactd.protocol")
local wire = require("compactd.wire")

local M = {}

M.GONE = wire.GONE

---@type "none"|"starting"|"ready"|"waiting"|"failed"
M.status = "none"
---@type string? Why it is not there, or what to mind.
M.problem = nil
---@type compactd.Place?
M.place = nil
---@type {version: string, protocol_version: string}?
M.version = nil

--- What the rest of the plugin is told. Set by `sessions`.
M.hooks = {
  event = function(_params) end,
  request = function(_method, _params, answer)
    answer(nil, { code = -32601, message = "nobody is there to answer this" })
  end,
  ready = function(_again, _died) end,
  gone = function() end,
}

local client_id = nil ---@type integer?
local link = nil ---@type compactd.Wire?
local waiting = {} ---@type fun(problem?: string)[]
local deaths = {} ---@type integer[]
local generation = 0
local has_run = false
local died = nil ---@type string?

local function tell(message, level)
  log.add("life", message)
  vim.notify("compactd: " .. message, level)
end

local function settle(problem)
  local callbacks = waiting
  waiting = {}
  for _, callback in ipairs(callbacks) do
    callback(problem)
  end
end

local function fail(problem)
  M.status = "failed"
  M.problem = problem
  log.add("life", problem)
  settle(problem)
end

local function numbers(version)
  local major, minor = tostring(version):match("^(%d+)%.(%d+)")
  return tonumber(major), tonumber(minor)
end

--- What to say of a daemon that answered `initialize` so: a problem, or a warning, or neither.
---@param result any
---@return string? problem
---@return string? warning
function M.judge(result)
  local block = vim.tbl_get(type(result) == "table" and result or {}, "capabilities", "experimental", "compactd")
  if type(block) ~= "table" or block.protocol_version == nil then
    return "what was started is no compactd, or one from before its first release"
  end
  local major, minor = numbers(block.protocol_version)
  local our_major, our_minor = numbers(protocol.version)
  if major ~= our_major then
    return ("the daemon speaks protocol %s, this plugin %s. Update the %s: pipx upgrade compactd"):format(
      tostring(block.protocol_version),
      protocol.version,
      (major or 0) < our_major and "daemon" or "plugin; the daemon is newer than it. Or install an older daemon"
    )
  elseif minor < our_minor then
    return nil,
      ("the daemon is older than this plugin (protocol %s, not %s): some commands may be refused"):format(
        block.protocol_version,
        protocol.version
      )
  end
  return nil, nil
end

local start

local function restart_later()
  local now = vim.uv.now()
  deaths = vim.tbl_filter(function(at)
    return now - at < 60000
  end, deaths)
  deaths[#deaths + 1] = now
  if #deaths > config.values.restarts then
    fail("the daemon died " .. #deaths .. " times in a minute and is left alone. :Compactd log, :Compactd restart")
    tell(M.problem, vim.log.levels.ERROR)
    return
  end
  M.status = "waiting"
  local delay = config.values.restart_delay_ms * 2 ^ (#deaths - 1)
  vim.defer_fn(function()
    if M.status == "waiting" then
      start()
    end
  end, math.min(delay, 8000))
end

local function ended(mine, code, signal)
  if mine ~= generation then
    return
  end
  link, client_id = nil, nil
  local how = signal ~= 0 and ("signal " .. signal) or ("code " .. code)
  local was = M.status
  M.hooks.gone()
  if was == "ready" then
    died = how
    log.add("life", "the daemon ended with " .. how)
    restart_later()
  elseif was == "starting" then
    fail(("the daemon ended with %s before it said anything (%s)"):format(how, M.place and M.place.path or "?"))
  end
end

local function kill()
  generation = generation + 1
  local old = link
  link, client_id = nil, nil
  if old and not old.is_closing() then
    old.terminate()
    vim.defer_fn(function()
      pcall(vim.uv.kill, old.pid, "sigkill")
    end, 2000)
  end
end

local function refuse(problem)
  kill()
  fail(problem)
end

local NOWHERE = {
  pid = 0,
  request = function()
    return false
  end,
  notify = function()
    return false
  end,
  is_closing = function()
    return true
  end,
  terminate = function() end,
}

local function accepted(result)
  local problem, warning = M.judge(result)
  if problem then
    vim.schedule(function()
      refuse(problem)
    end)
    return false
  end
  M.version = {
    version = tostring(vim.tbl_get(result, "serverInfo", "version")),
    protocol_version = result.capabilities.experimental.compactd.protocol_version,
  }
  M.problem = warning
  if warning then
    tell(warning, vim.log.levels.WARN)
  end
  return true
end

---@param mine integer
---@param dispatchers table
local function spawn(mine, dispatchers)
  local started, problem = wire.start({
    cmd = M.place.cmd,
    cwd = vim.uv.cwd(),
    env = config.values.env,
    trace = function()
      return config.values.trace
    end,
    on_event = function(params)
      M.hooks.event(params)
    end,
    on_request = function(method, params, answer)
      M.hooks.request(method, params, answer)
    end,
    on_garbage = function(what)
      if mine == generation then
        local was_ready = M.status == "ready"
        log.add("life", "no message of the protocol: " .. what)
        refuse("the daemon wrote something that is no message of the protocol, and was stopped. :Compactd log shows it")
        if was_ready then
          M.hooks.gone()
          tell(M.problem, vim.log.levels.ERROR)
        end
      end
    end,
    on_exit = function(code, signal)
      ended(mine, code, signal)
    end,
  }, dispatchers)
  if started == nil then
    vim.schedule(function()
      fail("the daemon could not be started: " .. problem)
    end)
    return NOWHERE
  end
  link = started
  local ask = started.request
  started.request = function(method, params, callback, sent)
    if method ~= "initialize" then
      return ask(method, params, callback, sent)
    end
    return ask(method, params, function(failure, result)
      if mine ~= generation then
        return
      elseif failure then
        vim.schedule(function()
          if mine == generation and M.status == "starting" then
            refuse("the daemon refused to begin: " .. tostring(failure.message))
          end
        end)
      elseif accepted(result) then
        callback(nil, result)
      end
    end, sent)
  end
  return started
end

start = function()
  generation = generation + 1
  local mine = generation
  M.status = "starting"
  M.problem = nil
  local found, advice = finding.find(vim.uv.cwd())
  M.place = found
  if found == nil then
    return fail(advice)
  end
  log.add("life", ("starting %s (from the %s)"):format(table.concat(found.cmd, " "), found.from))
  local settings = {
    name = "compactd",
    cmd = function(dispatchers)
      return spawn(mine, dispatchers)
    end,
    root_dir = vim.uv.cwd(),
    init_options = config.values.compaction and { compaction = config.values.compaction } or nil,
    handlers = {
      ["window/logMessage"] = function(_, params)
        log.add("daemon", params and params.message or "")
        return vim.NIL
      end,
    },
    on_init = function()
      if mine ~= generation then
        return
      end
      local again, how = has_run, died
      has_run, died = true, nil
      M.status = "ready"
      M.hooks.ready(again, how)
      settle(nil)
    end,
  }
  if vim.fn.has("nvim-0.11") == 1 then
    client_id = vim.lsp.start(settings, { attach = false })
  else
    client_id = vim.lsp.start_client(settings)
  end
  vim.defer_fn(function()
    if mine == generation and M.status == "starting" then
      refuse(("the daemon did not answer within %d s (%s)"):format(config.values.start_timeout_ms / 1000, found.path))
      if has_run then
        tell(M.problem, vim.log.levels.ERROR)
      end
    end
  end, config.values.start_timeout_ms)
end

--- Calls `callback` when the daemon is ready, or with the problem why it is not.
---@param callback fun(problem?: string)
function M.ensure(callback)
  if M.status == "ready" then
    return callback(nil)
  end
  waiting[#waiting + 1] = callback
  if M.status == "none" or M.status == "failed" then
    deaths = {}
    start()
  end
end

--- Asks the daemon. `callback` is called once, with an error `{code, message, data?}` or a result.
---@param method string
---@param params table
---@param callback fun(failure?: table, result?: any)
---@param started? fun(cancel: fun()) Called when it was sent, with what takes it back.
function M.request(method, params, callback, started)
  M.ensure(function(problem)
    if problem or link == nil then
      return callback({ code = M.GONE, message = problem or "the daemon is not there" })
    end
    local asked = link
    local sent, id = asked.request(method, next(params) and params or vim.empty_dict(), function(failure, result)
      callback(failure, result)
    end)
    if not sent then
      callback({ code = M.GONE, message = "the daemon is not there" })
    elseif started then
      started(function()
        asked.notify("$/cancelRequest", { id = id })
      end)
    end
  end)
end

--- Ends the daemon and starts it anew; sessions are opened again.
---@param callback fun(problem?: string)
function M.restart(callback)
  kill()
  M.hooks.gone()
  M.status = "none"
  deaths = {}
  M.ensure(callback)
end

--- The id of vim.lsp's client, and the daemon's process.
---@return integer? client_id
---@return integer? pid
function M.ids()
  return client_id, link and link.pid
end

return M
