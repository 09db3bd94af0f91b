--- The tools of chat, run in the editor, each with the person's consent.
local config = require("compactd.config")
local edit = require("compactd.edit")
local log = require("compactd.log")
local paths = require("compactd.paths")
local text = require("compactd.text")

local M = {}

local MOST_CHARS = 100000 -- of what a tool gives back
local COMMAND_MS = 120000

local function schema(name, description, properties, required)
  local kinds = {}
  for property, what in pairs(properties) do
    kinds[property] = { type = what[1], description = what[2] }
  end
  return {
    name = name,
    description = description,
    input_schema = { type = "object", properties = kinds, required = required },
  }
end

M.SCHEMAS = {
  schema("read_file", "Reads a text file of the workspace.", {
    path = { "string", "Relative to the workspace." },
    first_line = { "integer", "1 is the first." },
    last_line = { "integer", "Inclusive." },
  }, { "path" }),
  schema("edit_file", "Replaces a text in a file, or makes a new file where old_text is empty. The person sees a diff.", {
    path = { "string", "Relative to the workspace." },
    old_text = { "string", "Exactly as in the file, once in it." },
    new_text = { "string", "The new text." },
  }, { "path", "old_text", "new_text" }),
  schema("run_command", "Runs a shell command in the workspace, with the person's consent.", {
    command = { "string", "For the shell." },
  }, { "command" }),
}

local granted = {} ---@type table<string, boolean> "session tool" for which the person said: always.

local function failed(what)
  return { content = what, is_error = true }
end

local function cut(content)
  if #content <= MOST_CHARS then
    return content
  end
  return content:sub(1, MOST_CHARS) .. ("\n[cut: %d more bytes]"):format(#content - MOST_CHARS)
end

--- Asks the person, as the setting says; calls `yes` or answers with a refusal.
local function consent(call, question, must_ask, yes, answer)
  local policy = config.values.tools[call.name] or "ask"
  local key = call.session_id .. " " .. call.name
  if policy == "deny" then
    return answer(failed("the person's settings refuse this tool"))
  elseif not must_ask and (policy == "allow" or granted[key]) then
    return yes()
  end
  vim.ui.select({ "Yes", "Yes, always in this session", "No" }, { prompt = question }, function(choice)
    if choice == "Yes" then
      yes()
    elseif choice == "Yes, always in this session" then
      granted[key] = true
      yes()
    else
      answer(failed("the person refused"))
    end
  end)
end

local function read_file(call, arguments, answer)
  local path, is_inside = paths.resolve(arguments.path)
  local shown = text.line(arguments.path, 60)
  local question = is_inside and ("Let the model read %s?"):format(shown)
    or ("Let the model read %s, OUTSIDE the workspace?"):format(text.line(path, 60))
  consent(call, question, not is_inside, function()
    local file = io.open(path, "rb")
    local content = file and file:read("*a")
    if file then
      file:close()
    end
    if content == nil then
      return answer(failed("cannot read " .. arguments.path))
    end
    if arguments.first_line or arguments.last_line then
      local lines = vim.split(content, "\n", { plain = true })
      local first = math.max(1, tonumber(arguments.first_line) or 1)
      local last = math.min(#lines, tonumber(arguments.last_line) or #lines)
      content = table.concat(vim.list_slice(lines, first, last), "\n")
    end
    answer({ content = cut(content) })
  end, answer)
end

local function edit_file(call, arguments, answer)
  local path, is_inside = paths.resolve(arguments.path)
  local plan, problem = edit.plan(path, tostring(arguments.old_text or ""), tostring(arguments.new_text or ""))
  if plan == nil then
    return answer(failed(problem))
  end
  local policy = config.values.tools.edit_file
  local function done(ok, what)
    answer({ content = what, is_error = not ok or nil })
  end
  if policy == "deny" then
    answer(failed("the person's settings refuse this tool"))
  elseif policy == "allow" and is_inside then
    done(edit.apply(plan))
  else
    edit.ask(plan, done)
  end
end

local function run_command(call, arguments, answer)
  local command = tostring(arguments.command)
  consent(call, ("Let the model run: %s"):format(text.line(command, 200)), false, function()
    local shell = vim.fn.has("win32") == 1 and { "cmd", "/c", command } or { "sh", "-c", command }
    local ok, problem = pcall(vim.system, shell, { text = true, timeout = COMMAND_MS, stdin = false }, function(done)
      vim.schedule(function()
        local said = (done.stdout or "") .. (done.stderr or "")
        local how = done.code == 0 and "" or ("[exit code %d]\n"):format(done.code)
        answer({ content = cut(how .. said), is_error = done.code ~= 0 or nil })
      end)
    end)
    if not ok then
      answer(failed(tostring(problem)))
    end
  end, answer)
end

local RUN = { read_file = read_file, edit_file = edit_file, run_command = run_command }
local NEEDED = { read_file = "path", edit_file = "path", run_command = "command" }

--- Runs a tool the model called; `answer` is called once, maybe much later.
---@param call {session_id: string, call_id: string, name: string, arguments: any}
---@param answer fun(result: table)
function M.execute(call, answer)
  local run = RUN[call.name]
  local arguments = type(call.arguments) == "table" and call.arguments or {}
  if run == nil then
    return answer(failed(("there is no tool %q here"):format(tostring(call.name))))
  elseif type(arguments[NEEDED[call.name]]) ~= "string" then
    return answer(failed(("%s is missing"):format(NEEDED[call.name])))
  end
  log.add("life", ("the model asked for %s"):format(call.name))
  local ok, problem = pcall(run, call, arguments, answer)
  if not ok then
    answer(failed(tostring(problem)))
  end
end

return M
