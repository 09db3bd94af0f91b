--- `:Compactd`: its words, and what each does.
local config = require("compactd.config")
local daemon = require("compactd.daemon")
local gauge = require("compactd.gauge")
local log = require("compactd.log")
local pick = require("compactd.pick")
local sessions = require("compactd.sessions")
local text = require("compactd.text")

local M = {}

gauge.define_highlights()
vim.api.nvim_create_autocmd("ColorScheme", { callback = gauge.define_highlights })

local function failed(failure)
  vim.notify("compactd: " .. text.clean(tostring(failure.message)), vim.log.levels.ERROR)
end

local function say(line)
  vim.api.nvim_echo({ { line } }, true, {})
end

--- Does `act` with the current session, or says why not.
local function with_session(act)
  sessions.with(function(failure, session)
    if failure then
      failed(failure)
    else
      act(session)
    end
  end)
end

local function session_line(info)
  return ("%s  %s, %s, %s%s"):format(
    text.line(info.title or info.session_id, 50),
    text.count(info.message_count, "message"),
    text.clean(info.model or "no model"),
    text.ago(info.updated_at),
    info.compactions > 0 and (", " .. text.count(info.compactions, "compaction")) or ""
  )
end

local function search(session, query)
  daemon.request("session/search", { session_id = session.id, query = query, limit = 100 }, function(failure, result)
    if failure then
      return failed(failure)
    elseif #result.hits == 0 then
      return say(("compactd: nothing in this session says %q"):format(text.line(query, 40)))
    end
    pick.choose(result.hits, {
      prompt = ("%s of %s"):format(text.count(#result.hits, "hit"), text.line(query, 30)),
      format = function(hit)
        local where = hit.in_context and "in context" or "summarised"
        return ("%-6s %-9s %-10s %s"):format(text.clean(hit.entry_id), hit.role, where, text.line(hit.snippet, 80))
      end,
    }, function(hit)
      if hit then
        require("compactd.context").read(session.id, hit.entry_id)
      end
    end)
  end)
end

local function rewind(method, verb)
  return function()
    with_session(function(session)
      sessions.request(method, { session_id = session.id }, function(failure, result)
        if failure then
          return failed(failure)
        end
        sessions.refresh(session.id)
        local used = text.number(result.token_usage.current_context_tokens)
        say(("compactd: %s; %s, %s tokens"):format(verb, text.count(result.message_count, "message"), used))
      end)
    end)
  end
end

--- What the words behind `compact` wish: `keep=4`, the rest is the focus.
---@param words string[]
---@return compactd.Wish
function M.wish(words)
  local wish, focus = {}, {}
  for _, word in ipairs(words) do
    local keep = word:match("^keep=(%d+)$")
    if keep then
      wish.keep = tonumber(keep)
    else
      focus[#focus + 1] = word
    end
  end
  wish.focus = #focus > 0 and table.concat(focus, " ") or nil
  return wish
end

---@class compactd.Subcommand
---@field about string
---@field run fun(words: string[], has_bang: boolean)
---@field complete? fun(lead: string): string[]

---@type table<string, compactd.Subcommand>
M.subcommands = {
  start = {
    about = "start [title]: a new session",
    run = function(words)
      local title = #words > 0 and table.concat(words, " ") or nil
      sessions.start({ title = title }, function(failure, session)
        if failure then
          return failed(failure)
        end
        say(("compactd: session %s, %s"):format(session.id, text.clean(session.model or "no model")))
      end)
    end,
  },
  compact = {
    about = "compact [focus] [keep=N]: compacts after a preview, with ! at once",
    run = function(words, has_bang)
      local wish = M.wish(words)
      with_session(function(session)
        local preview = require("compactd.preview")
        if has_bang then
          preview.compact(session, wish)
        else
          preview.open(session, wish)
        end
      end)
    end,
    complete = function()
      return { "keep=" }
    end,
  },
  undo = { about = "undo: takes the last compaction back", run = rewind("session/undo", "taken back") },
  redo = { about = "redo: puts it in force again", run = rewind("session/redo", "in force again") },
  context = {
    about = "context: what is in the context, and what was summarised",
    run = function()
      with_session(function(session)
        require("compactd.context").open(session)
      end)
    end,
  },
  work = {
    about = "work: where the work stands: goal, plan, changed files, checks, errors, decisions",
    run = function()
      with_session(function(session)
        require("compactd.work").open(session)
      end)
    end,
  },
  gauge = {
    about = "gauge: how full the context is, and where the number is from",
    run = function()
      with_session(function(session)
        say(table.concat(gauge.long(session), "\n"))
      end)
    end,
  },
  search = {
    about = "search WORDS: in all that was ever said in this session",
    run = function(words)
      with_session(function(session)
        if #words > 0 then
          return search(session, table.concat(words, " "))
        end
        vim.ui.input({ prompt = "Search: " }, function(query)
          if query and query ~= "" then
            search(session, query)
          end
        end)
      end)
    end,
  },
  sessions = {
    about = "sessions: opens another session",
    run = function()
      daemon.request("session/list", {}, function(failure, result)
        if failure then
          return failed(failure)
        elseif #result.sessions == 0 then
          return say("compactd: there is no session yet; :Compactd chat begins one")
        end
        pick.choose(result.sessions, { prompt = "Session", format = session_line }, function(info)
          if info == nil then
            return
          end
          sessions.start({ session_id = info.session_id, title = info.title }, function(problem, session)
            if problem then
              return failed(problem)
            end
            say(("compactd: %s, %s"):format(text.line(session.title, 50), gauge.short(session)))
          end)
        end)
      end)
    end,
  },
  chat = {
    about = "chat: a conversation with the session's model",
    run = function()
      with_session(function(session)
        require("compactd.chat").open(session)
      end)
    end,
  },
  abort = {
    about = "abort: stops the answer that is coming, or the compaction that runs",
    run = function()
      with_session(function(session)
        if session.cancel then
          return session.cancel()
        end
        daemon.request("agent/abort", { session_id = session.id }, function(failure)
          if failure then
            failed(failure)
          end
        end)
      end)
    end,
  },
  accept = {
    about = "accept: the edit that is shown",
    run = function()
      local shown = require("compactd.edit").current
      if shown then
        shown.accept()
      end
    end,
  },
  reject = {
    about = "reject: the edit that is shown",
    run = function()
      local shown = require("compactd.edit").current
      if shown then
        shown.reject()
      end
    end,
  },
  model = {
    about = "model PROVIDER/ID: the session's model from now on",
    run = function(words)
      with_session(function(session)
        if #words == 0 then
          return say("compactd: " .. text.clean(session.model or "no model"))
        end
        sessions.request("model/set", { session_id = session.id, model = words[1] }, function(failure, result)
          if failure then
            return failed(failure)
          end
          sessions.refresh(session.id)
          say("compactd: " .. text.clean(result.model or words[1]))
        end)
      end)
    end,
  },
  import = {
    about = "import FILE: another agent's session, to look at and to go on with",
    run = function(words)
      local path = vim.fn.fnamemodify(require("compactd.paths").home(table.concat(words, " ")), ":p")
      if #words == 0 or vim.fn.filereadable(path) == 0 then
        return failed({ message = "name a session file: :Compactd import FILE" })
      end
      daemon.request("session/import", { path = path }, function(failure, imported)
        if failure then
          return failed(failure)
        end
        for _, warning in ipairs(imported.warnings) do
          log.add("daemon", warning)
        end
        local title = vim.fs.basename(path)
        local given = { session_id = imported.session_id, title = title, writes = true }
        sessions.start(given, function(problem, session)
          if problem then
            return failed(problem)
          end
          say(("compactd: %s of %s"):format(text.count(imported.message_count, "message"), imported.format))
          require("compactd.context").open(session)
        end)
      end)
    end,
    complete = function(lead)
      return vim.fn.getcompletion(lead, "file")
    end,
  },
  log = { about = "log: what happened", run = log.open },
  trace = {
    about = "trace off|messages|verbose: how much of the wire the log holds",
    run = function(words)
      local level = words[1] or (config.values.trace == "off" and "messages" or "off")
      if vim.tbl_contains({ "off", "messages", "verbose" }, level) then
        config.values.trace = level
        say("compactd: trace " .. level)
      else
        failed({ message = "trace: off, messages or verbose" })
      end
    end,
    complete = function()
      return { "off", "messages", "verbose" }
    end,
  },
  restart = {
    about = "restart: restarts the daemon",
    run = function()
      daemon.restart(function(problem)
        if problem then
          failed({ message = problem })
        end
      end)
    end,
  },
  health = {
    about = "health: what works here, and what to do where it does not",
    run = function()
      vim.cmd("checkhealth compactd")
    end,
  },
}

---@param command {fargs: string[], bang?: boolean}
function M.run(command)
  local name = command.fargs[1] or "gauge"
  local subcommand = M.subcommands[name]
  if subcommand == nil then
    return failed({ message = ("there is no %q; Tab lists the commands"):format(name) })
  end
  subcommand.run(vim.list_slice(command.fargs, 2), command.bang == true)
end

--- What could be meant by what was typed so far.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local words = vim.split(line, "%s+", { trimempty = true })
  local index = #words + (lead == "" and 1 or 0)
  local candidates = {}
  if index <= 2 then
    candidates = vim.tbl_keys(M.subcommands)
  else
    local subcommand = M.subcommands[words[2]]
    candidates = subcommand and subcommand.complete and subcommand.complete(lead) or {}
  end
  candidates = vim.tbl_filter(function(each)
    return vim.startswith(each, lead)
  end, candidates)
  table.sort(candidates)
  return candidates
end

return M
