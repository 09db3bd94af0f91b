--- The public functions of the plugin. Nothing is loaded or started before one is called.
local M = {}

M.VERSION = "0.1.0"

--- Takes settings (`:help compactd-settings`). Calling it is optional.
---@param given? table
function M.setup(given)
  local problems = require("compactd.config").set(given)
  if #problems > 0 then
    vim.notify("compactd: the settings were not taken: " .. table.concat(problems, "; "), vim.log.levels.ERROR)
  end
end

--- The gauge of the current session for a status line, `""` if none is open:
--- `vim.o.statusline = "%f %=%{%v:lua.require'compactd'.statusline()%}"`.
---@param options? {plain?: boolean} Plain: no highlight, `%` once: for other status line plugins.
---@return string
function M.statusline(options)
  local sessions = package.loaded["compactd.sessions"]
  local session = sessions and sessions.current()
  if not session then
    return ""
  end
  local gauge = require("compactd.gauge")
  local said = gauge.short(session)
  if options and options.plain then
    return said
  end
  local group = gauge.group(session)
  said = said:gsub("%%", "%%%%")
  return group and ("%%#%s#%s%%*"):format(group, said) or said
end

--- The current session as it stands, or nil. A copy.
---@return compactd.Open?
function M.state()
  local sessions = package.loaded["compactd.sessions"]
  local session = sessions and sessions.current()
  if session == nil then
    return nil
  end
  local copy = vim.deepcopy(session)
  copy.cancel = nil
  return copy
end

--- Asks the daemon, which is started if need be; `callback(failure, result)`. A request that changes a session that
--- is only looked at here takes it for writing first.
---@param method string As in protocol.md.
---@param params table
---@param callback fun(failure?: table, result?: any)
function M.request(method, params, callback)
  require("compactd.sessions").request(method, params, callback)
end

return M
