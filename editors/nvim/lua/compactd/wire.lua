--- The daemon's process and the bytes on its pipes, in the shape that vim.lsp takes as `cmd`. compactd has its
--- own, so that garbage on the pipe is a message and not an error, and a question to us may be answered later.
local log = require("compactd.log")

local M = {}

M.GONE = -32000 -- the code of our own errors: nobody answered

---@class compactd.Wire What vim.lsp calls a `PublicClient`, and our part.
---@field request fun(method: string, params?: table, callback: fun(err?: table, result: any), sent?: fun(id: integer)): boolean, integer?
---@field notify fun(method: string, params?: table): boolean
---@field is_closing fun(): boolean
---@field terminate fun()
---@field pid integer

---@class compactd.WireOptions
---@field cmd string[]
---@field cwd string
---@field env table<string, string>
---@field trace fun(): "off"|"messages"|"verbose"
---@field on_event fun(params: table)
---@field on_request fun(method: string, params: table, answer: fun(result?: any, error?: table))
---@field on_garbage fun(what: string)
---@field on_exit fun(code: integer, signal: integer)

local MOST_BYTES = 2 ^ 32 -- a longer length is no length
local MOST_HEADER = 8192

local function shown(message, verbose)
  local json = vim.json.encode(message)
  if verbose then
    return json
  end
  local name = message.method or (message.error and "error") or "result"
  return ("%s%s (%d bytes)"):format(name, message.id and (" #%s"):format(tostring(message.id)) or "", #json)
end

--- A function that takes the bytes as they come and calls `got` with each body, `broken` once with what is
--- no message.
---@param got fun(body: string)
---@param broken fun(what: string)
---@return fun(chunk: string)
function M.reader(got, broken)
  local parts, held, need, failed = {}, 0, nil, false

  local function fail(what)
    failed = true
    parts = {}
    broken(what)
  end

  return function(chunk)
    if failed then
      return
    end
    parts[#parts + 1] = chunk
    held = held + #chunk
    while not failed do
      if need == nil then
        local bytes = table.concat(parts)
        local stop, rest = bytes:find("\r?\n\r?\n")
        if stop == nil then
          if held > MOST_HEADER or (held > 0 and not ("content-"):find(bytes:sub(1, 8):lower(), 1, true)) then
            return fail(bytes:sub(1, 200))
          end
          parts = { bytes }
          return
        end
        local length = tonumber(("\n" .. bytes:sub(1, stop - 1)):lower():match("\ncontent%-length:%s*(%d+)"))
        if length == nil or length > MOST_BYTES then
          return fail(bytes:sub(1, 200))
        end
        need = length
        parts = { bytes:sub(rest + 1) }
        held = #parts[1]
      end
      if held < need then
        return
      end
      local bytes = table.concat(parts)
      local body = bytes:sub(1, need)
      parts = { bytes:sub(need + 1) }
      held = #parts[1]
      need = nil
      got(body)
    end
  end
end

--- Starts the daemon. Nil and a sentence where that fails.
---@param options compactd.WireOptions
---@param dispatchers table Of vim.lsp: `notification`, `server_request`, `on_exit`, `on_error`.
---@return compactd.Wire? wire
---@return string? problem
function M.start(options, dispatchers)
  local last_id = 0
  local waiting = {} ---@type table<integer, {callback: function, sent?: function}>
  local closing = false
  local process ---@type vim.SystemObj

  local function trace(arrow, message)
    local level = options.trace()
    if level ~= "off" then
      log.add(arrow, shown(message, level == "verbose"))
    end
  end

  local function send(message)
    if closing then
      return false
    end
    trace("→", message)
    local body = vim.json.encode(message)
    return pcall(process.write, process, ("Content-Length: %d\r\n\r\n%s"):format(#body, body))
  end

  local function take(message)
    trace("←", message)
    if type(message.method) == "string" and message.id ~= nil then
      local id = message.id
      local function answer(result, failure)
        if failure == nil and result == nil then
          result = vim.NIL
        end
        send({ jsonrpc = "2.0", id = id, result = result, error = failure })
      end
      if vim.startswith(message.method, "tool/") or vim.startswith(message.method, "session/") then
        options.on_request(message.method, message.params or {}, answer)
      else
        local result, failure = dispatchers.server_request(message.method, message.params)
        answer(result, failure)
      end
    elseif type(message.method) == "string" then
      if message.method == "agent/event" then
        options.on_event(message.params or {})
      else
        dispatchers.notification(message.method, message.params)
      end
    elseif message.id ~= nil then
      local asked = waiting[message.id]
      waiting[message.id] = nil
      if asked then
        if asked.sent then
          asked.sent(message.id)
        end
        asked.callback(message.error, message.result)
      end
    end
  end

  -- Messages are taken in one go a turn of the loop, however many a chunk holds.
  local inbox, is_scheduled = {}, false
  local function drain()
    is_scheduled = false
    local messages = inbox
    inbox = {}
    for _, message in ipairs(messages) do
      local ok, problem = pcall(take, message)
      if not ok then
        log.add("life", "a message could not be taken in: " .. tostring(problem))
      end
    end
  end

  local function broken(what)
    vim.schedule(function()
      options.on_garbage(what)
    end)
  end

  local read = M.reader(function(body)
    local ok, message = pcall(vim.json.decode, body, { luanil = { object = true } })
    if not ok or type(message) ~= "table" then
      return broken(body:sub(1, 200))
    end
    inbox[#inbox + 1] = message
    if not is_scheduled then
      is_scheduled = true
      vim.schedule(drain)
    end
  end, broken)

  local ok, started = pcall(vim.system, options.cmd, {
    cwd = options.cwd,
    env = options.env,
    stdin = true,
    stdout = function(_, chunk)
      if chunk then
        read(chunk)
      end
    end,
    stderr = function(_, chunk)
      if chunk then
        vim.schedule(function()
          log.add("stderr", chunk)
        end)
      end
    end,
  }, function(done)
    closing = true
    vim.schedule(function()
      drain()
      local left = waiting
      waiting = {}
      options.on_exit(done.code, done.signal)
      for _, asked in pairs(left) do
        asked.callback({ code = M.GONE, message = "the daemon ended before it answered" })
      end
    end)
    -- vim.lsp would tell the person of every code but 0; this plugin tells once, in its own words.
    dispatchers.on_exit(0, 0)
  end)
  if not ok then
    return nil, tostring(started)
  end
  process = started

  return {
    pid = process.pid,
    request = function(method, params, callback, sent)
      last_id = last_id + 1
      local id = last_id
      waiting[id] = { callback = callback, sent = sent }
      if not send({ jsonrpc = "2.0", id = id, method = method, params = params }) then
        waiting[id] = nil
        return false
      end
      return true, id
    end,
    notify = function(method, params)
      return send({ jsonrpc = "2.0", method = method, params = params })
    end,
    is_closing = function()
      return closing
    end,
    terminate = function()
      closing = true
      process:kill("sigterm")
    end,
  }
end

return M
