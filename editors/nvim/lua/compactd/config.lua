--- What a person may set. `setup()` is optional: these are the values without it.
local M = {}

---@class compactd.Config
---@field cmd? string[]|string The daemon, with its arguments. Nil: it is looked for.
---@field env table<string, string> Added to the daemon's environment.
---@field model? string|compactd.ModelRef Of a new session: `"provider/id"`, or its parts.
---@field system_prompt? string Of a new session.
---@field compaction? compactd.GivenSettings Of every session; `:help compactd-settings`.
---@field tools table<string, "ask"|"allow"|"deny"> What chat's tools may do.
---@field trace "off"|"messages"|"verbose" How much of the wire the log holds.
---@field start_timeout_ms integer How long the daemon may take to say its first word.
---@field restart_delay_ms integer Before the first restart; doubled for each further one.
---@field restarts integer How often in a minute a daemon that dies is started again.
---@field coalesce_ms integer How long events are collected before the screen shows them.
---@field icon string In front of the gauge.
---@field width number Of floating windows: a share of the screen.
---@field height number The same.

---@type compactd.Config
M.defaults = {
  cmd = nil,
  env = {},
  model = nil,
  system_prompt = nil,
  compaction = nil,
  tools = { read_file = "ask", edit_file = "ask", run_command = "ask" },
  trace = "off",
  start_timeout_ms = 10000,
  restart_delay_ms = 250,
  restarts = 5,
  coalesce_ms = 40,
  icon = "◔",
  width = 0.85,
  height = 0.8,
}

---@type compactd.Config
M.values = vim.deepcopy(M.defaults)

local KINDS = {
  cmd = { "string", "table", "nil" },
  env = { "table" },
  model = { "string", "table", "nil" },
  system_prompt = { "string", "nil" },
  compaction = { "table", "nil" },
  tools = { "table" },
  trace = { "string" },
  start_timeout_ms = { "number" },
  restart_delay_ms = { "number" },
  restarts = { "number" },
  coalesce_ms = { "number" },
  icon = { "string" },
  width = { "number" },
  height = { "number" },
}

--- What is wrong with `given`, a sentence for each.
---@param given table
---@return string[]
function M.problems(given)
  local problems = {}
  for name, value in pairs(given) do
    local kinds = KINDS[name]
    if kinds == nil then
      problems[#problems + 1] = ("there is no setting %q"):format(tostring(name))
    elseif not vim.tbl_contains(kinds, type(value)) then
      problems[#problems + 1] = ("%s: expected %s, got %s"):format(name, table.concat(kinds, " or "), type(value))
    end
  end
  for name, value in pairs(type(given.tools) == "table" and given.tools or {}) do
    if not vim.tbl_contains({ "ask", "allow", "deny" }, value) then
      problems[#problems + 1] = ("tools.%s: expected ask, allow or deny"):format(tostring(name))
    end
  end
  if type(given.trace) == "string" and not vim.tbl_contains({ "off", "messages", "verbose" }, given.trace) then
    problems[#problems + 1] = "trace: expected off, messages or verbose"
  end
  table.sort(problems)
  return problems
end

--- Takes settings over, each that is well formed.
---@param given? table
---@return string[] problems
function M.set(given)
  given = given or {}
  local problems = M.problems(given)
  if #problems == 0 then
    M.values = vim.tbl_deep_extend("force", vim.deepcopy(M.defaults), given)
  end
  return problems
end

return M
