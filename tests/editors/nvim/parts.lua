-- The plugin's parts by themselves. Prints one line a check; pytest reads them.
local failures, count = {}, 0

local function check(name, act)
  count = count + 1
  local ok, problem = pcall(act)
  if not ok then
    failures[#failures + 1] = name .. ": " .. tostring(problem)
  end
end

local function same(seen, wanted)
  if not vim.deep_equal(seen, wanted) then
    error(("saw %s, wanted %s"):format(vim.inspect(seen), vim.inspect(wanted)), 2)
  end
end

local text = require("compactd.text")

check("what would not show itself is written out", function()
  same(text.clean("a\27[31m\8b"), "a<1b>[31m<08>b")
  same(text.clean("\226\128\174exe.txt\226\129\166"), "<202e>exe.txt<2066>")
  same(text.clean("\194\155\194\160é"), "<009b>\194\160é")
  same(text.clean("one\r\ntwo\tthree\n"), "one\ntwo\tthree\n")
end)

check("a line is the first that says something, cut by columns", function()
  same(text.line("\n \n  two\t words \nthree", 20), "two words")
  same(text.line("漢字漢字漢字", 7), "漢字漢…")
  same(text.line("", 5), "")
end)

check("numbers are grouped", function()
  same({ text.number(0), text.number(999), text.number(1000), text.number(1234567), text.number(nil) }, { "0", "999", "1,000", "1,234,567", "?" })
end)

check("blocks of a message are its text", function()
  local message = { content = { { type = "text", text = "a" }, { type = "tool_call", name = "f", arguments = { x = 1 } }, { type = "image" } } }
  same(text.message(message), 'a\n→ f {"x":1}\n[image]')
  same(text.message({ content = vim.NIL }), "")
  same(text.message(nil), "")
end)

local wire = require("compactd.wire")

check("messages are read whatever the pieces they come in", function()
  local bytes = "Content-Length: 2\r\n\r\n{}content-length:3\n\n[1]Content-Type: x\r\nContent-Length: 4\r\n\r\nnull"
  for size = 1, #bytes do
    local got, broken = {}, nil
    local read = wire.reader(function(body)
      got[#got + 1] = body
    end, function(what)
      broken = what
    end)
    for from = 1, #bytes, size do
      read(bytes:sub(from, from + size - 1))
    end
    same({ got, broken }, { { "{}", "[1]", "null" }, nil })
  end
end)

check("what is no header is said at once, and once", function()
  for _, bytes in ipairs({ "hello", "Content-Length: x\r\n\r\n", "Content-Length: 99999999999\r\n\r\n", "{}\n" }) do
    local broken = 0
    local read = wire.reader(error, function()
      broken = broken + 1
    end)
    read(bytes)
    read(bytes)
    same(broken, 1)
  end
end)

local paths = require("compactd.paths")

check("a path is in the workspace or it is not, whatever is written", function()
  local root = vim.uv.fs_realpath(vim.fn.tempname():match("(.*)/")) .. "/w 100% ü"
  vim.fn.mkdir(root .. "/inner", "p")
  vim.uv.fs_symlink("/", root .. "/away")
  local function inside(path)
    local _, is_inside = paths.resolve(path, root)
    return is_inside
  end
  same({ inside("a.py"), inside("inner/../a"), inside("./x/y/z"), inside(root) }, { true, true, true, true })
  same({ inside("../a"), inside("/etc/passwd"), inside("away/etc"), inside("inner/../../a"), inside(root .. "x") }, { false, false, false, false, false })
  same(paths.resolve("new/file", root), root .. "/new/file")
end)

local edit = require("compactd.edit")

check("an edit names what it replaces exactly once", function()
  local path = vim.fn.tempname()
  vim.fn.writefile({ "one %d two", "two" }, path)
  same(edit.plan(path, "one %d", "1").after, "1 two\ntwo\n")
  local function problem(old)
    local _, what = edit.plan(path, old, "x")
    return what
  end
  same(problem("two"), "old_text is in the file more than once: give more of it")
  same(problem("three"), "old_text is not in the file")
  same(problem(""), "the file is there: old_text must name what is replaced")
  same(edit.plan(path .. "-new", "", "x").after, "x")
  same(select(2, edit.plan(path .. "-new", "y", "x")), "there is no such file")
end)

local command = require("compactd.command")

check("compact takes a focus and keep=N", function()
  same(command.wish({ "the", "keep=4", "cache" }), { keep = 4, focus = "the cache" })
  same(command.wish({}), {})
end)

check("words complete", function()
  same(command.complete("co", "Compactd co"), { "compact", "context" })
  same(command.complete("", "Compactd trace "), { "messages", "off", "verbose" })
  same(command.complete("k", "Compactd compact k"), { "keep=" })
  same(command.complete("", "Compactd undo "), {})
end)

local config = require("compactd.config")

check("settings that are wrong are named, and none is taken", function()
  same(config.set({ modle = 1, width = "x", trace = "loud", tools = { run_command = "maybe" } }), {
    'there is no setting "modle"',
    "tools.run_command: expected ask, allow or deny",
    "trace: expected off, messages or verbose",
    "width: expected number, got string",
  })
  same(config.values, config.defaults)
  same(config.set({ tools = { run_command = "deny" } }), {})
  same(config.values.tools, { read_file = "ask", edit_file = "ask", run_command = "deny" })
  config.set({})
end)

local daemon = require("compactd.daemon")

check("versions are compared", function()
  local function judged(version)
    local problem, warning = daemon.judge({ capabilities = { experimental = { compactd = { protocol_version = version } } } })
    return problem and "problem" or warning and "warning" or "fine"
  end
  same({ judged("1.0"), judged("1.7"), judged("0.9"), judged("2.0"), judged(nil) }, { "fine", "fine", "problem", "problem", "problem" })
  same(daemon.judge(nil) ~= nil, true)
end)

local tools = require("compactd.tools")

local function tool(name, arguments, choice)
  local answer, asked = nil, nil
  local select = vim.ui.select
  vim.ui.select = function(_, options, callback)
    asked = options.prompt
    callback(choice)
  end
  tools.execute({ session_id = "s", call_id = "c", name = name, arguments = arguments }, function(said)
    answer = said
  end)
  vim.wait(100000, function()
    return answer ~= nil
  end, 5)
  vim.ui.select = select
  return answer, asked
end

check("a tool runs when the person said yes, and only then", function()
  vim.fn.writefile({ "one", "two", "three" }, "a.txt")
  same(tool("read_file", { path = "a.txt", first_line = 2, last_line = 2 }, "Yes"), { content = "two" })
  same(tool("read_file", { path = "a.txt" }, "No"), { content = "the person refused", is_error = true })
  same(tool("read_file", { path = "a.txt" }, nil), { content = "the person refused", is_error = true })
  same(tool("run_command", { command = "wc -l < a.txt | tr -d ' '" }, "Yes"), { content = "3\n" })
  same(tool("run_command", { command = "echo no; exit 3" }, "Yes"), { content = "[exit code 3]\nno\n", is_error = true })
  same(tool("fly", {}, "Yes").is_error, true)
  same(tool("read_file", { path = 5 }, "Yes").content, "path is missing")
  same(tool("read_file", { path = "b.txt" }, "Yes").is_error, true)
end)

check("what the person is asked shows what would happen, whatever stands in it", function()
  local _, asked = tool("run_command", { command = "rm x\27[2K\rls\226\128\174" }, "No")
  same(asked, "Let the model run: rm x<1b>[2K<0d>ls<202e>")
end)

check("always holds for one tool in one session, and not outside the workspace", function()
  tool("read_file", { path = "a.txt" }, "Yes, always in this session")
  local answer, asked = tool("read_file", { path = "a.txt" }, "No")
  same({ answer.content, asked }, { "one\ntwo\nthree\n", nil })
  answer, asked = tool("read_file", { path = "/etc/hostname" }, "No")
  same(answer.is_error, true)
  assert(asked:find("OUTSIDE the workspace", 1, true))
  same(tool("run_command", { command = "echo" }, "No").is_error, true)
end)

check("a tool that the settings refuse is not asked for", function()
  config.set({ tools = { read_file = "deny", edit_file = "deny", run_command = "deny" } })
  for name, arguments in pairs({
    read_file = { path = "a.txt" },
    edit_file = { path = "a.txt", old_text = "one", new_text = "1" },
    run_command = { command = "echo" },
  }) do
    local answer, asked = tool(name, arguments, "Yes")
    same({ answer.content, asked }, { "the person's settings refuse this tool", nil })
  end
  config.set({ tools = { edit_file = "allow" } })
  same(tool("edit_file", { path = "a.txt", old_text = "one", new_text = "1" }, "No"), { content = "done" })
  same(vim.fn.readfile("a.txt"), { "1", "two", "three" })
  config.set({})
end)

check("an edit that is refused changes nothing; one that is taken may be changed first", function()
  vim.fn.writefile({ "one", "two" }, "b.txt")
  local said
  local plan = edit.plan(paths.resolve("b.txt"), "two", "2")
  edit.ask(plan, function(...)
    said = { ... }
  end)
  edit.current.reject()
  same({ said, vim.fn.readfile("b.txt") }, { { false, "the person refused the edit" }, { "one", "two" } })
  edit.ask(plan, function(...)
    said = { ... }
  end)
  vim.api.nvim_buf_set_lines(0, -1, -1, false, { "three" })
  edit.current.accept()
  same({ said, vim.fn.readfile("b.txt") }, { { true, "done, with changes by the person" }, { "one", "2", "three" } })
  same(#vim.api.nvim_list_tabpages(), 1)
end)

local work = require("compactd.work")
local NOTHING = { constraints = {}, plan = {}, changes = {}, checks = {}, decisions = {}, failed_attempts = {}, open_errors = {} }

local function work_lines(given, width)
  return work.render(vim.tbl_extend("force", NOTHING, given), width or 100).lines
end

local function task(said, status)
  return { text = said, status = status, entry_id = "e1" }
end

check("the work has a line for each thing that is known, and none for others", function()
  same(work_lines({
    goal = "Mend it.",
    request = "Now test it.",
    plan = { task("find it", "done"), task("mend it", "in_progress") },
    changes = {
      { path = "a.py", kind = "edited", edits = 3, last_entry_id = "e2", committed = true, checked = true },
      { path = "b.py", kind = "created", edits = 1, last_entry_id = "e3", committed = false, checked = false },
    },
    checks = {
      { kind = "test", command = "pytest", outcome = "passed", entry_id = "e4", stale = true },
      { kind = "test", command = "pytest", outcome = "passed", entry_id = "e4", stale = true },
    },
    open_errors = { { text = "no space", command = "cp a b", entry_id = "e5" } },
    decisions = { { text = "a queue", was = "recursion", entry_id = "e6" } },
    now = { text = "I look.", entry_id = "e7" },
  }), {
    "goal         Mend it.",
    "request      Now test it.",
    "plan         1 of 2 tasks done",
    "             done         find it [e1]",
    "             in progress  mend it [e1]",
    "files        a.py   3 edits, committed, checked [e2]",
    "             b.py   created, uncommitted, unchecked [e3]",
    "checks       tests passed: pytest   files changed since [e4]",
    "open errors  no space (cp a b) [e5]",
    "decisions    a queue (before: recursion) [e6]",
    "now          I look. [e7]",
  })
  same(work_lines({ goal = "Do it.", request = "Do it." }), { "goal         Do it." })
  same(work_lines({}), { "Nothing yet: no message of this session says what is to be done." })
end)

check("of much work the newest is shown, and all is counted", function()
  local items, plan = {}, {}
  for n = 1, 5 do
    items[n] = { text = "try " .. n, entry_id = "e" .. n }
  end
  same(work_lines({ failed_attempts = items }), { "failed       5 failed attempts, the last 2:", "             try 4 [e4]", "             try 5 [e5]" })
  for n = 1, 9 do
    plan[n] = task("done " .. n, "done")
  end
  vim.list_extend(plan, { task("left", "dropped"), task("now", "in_progress"), task("later", "open") })
  local lines = work_lines({ plan = plan })
  same({ #lines, lines[1], lines[2], lines[9] }, {
    9,
    "plan         9 of 12 tasks done, 8 of them shown",
    "             done         done 5 [e1]",
    "             open         later [e1]",
  })
  plan = {}
  for n = 1, 10 do
    plan[n] = task("later " .. n, "open")
  end
  lines = work_lines({ plan = plan })
  same({ #lines, lines[9] }, { 9, "             open         later 8 [e1]" })
end)

check("a line about the work is one line of text, whatever stands in it, and names its message", function()
  local page = work.render(vim.tbl_extend("force", NOTHING, {
    goal = "one\n\n two\27[31m",
    now = { text = ("漢字 "):rep(60), entry_id = "e7" },
    open_errors = { { text = "x\ny", command = "z", entry_id = "e5" } },
  }), 60)
  same(page.lines[1], "goal         one two<1b>[31m")
  same(page.lines[2], "open errors  x y (z) [e5]")
  same(vim.fn.strdisplaywidth(page.lines[3]) <= 60 and page.lines[3]:match("… %[e7%]$") ~= nil, true)
  same({ page.targets[1], page.targets[3].entry_id, page.marks }, { nil, "e7", { { line = 2, group = "CompactdOver" } } })
end)

check("every file is Lua that can be read", function()
  for _, path in ipairs(vim.api.nvim_get_runtime_file("lua/**/*compactd*/**.lua", true)) do
    assert(loadfile(path))
  end
  for _, path in ipairs({ "lua/lualine/components/compactd.lua", "lua/telescope/_extensions/compactd.lua" }) do
    assert(loadfile(vim.api.nvim_get_runtime_file(path, false)[1]))
  end
end)

check("every subcommand and every setting is in the manual", function()
  local manual = table.concat(vim.fn.readfile(vim.api.nvim_get_runtime_file("doc/compactd.txt", false)[1]), "\n")
  for name in pairs(command.subcommands) do
    assert(manual:find("*:Compactd-" .. name .. "*", 1, true), name)
  end
  for _, name in ipairs({ "cmd", "model", "system_prompt", "compaction", unpack(vim.tbl_keys(config.defaults)) }) do
    assert(manual:find("\n      " .. name .. " = ", 1, true), name)
  end
end)

for _, failure in ipairs(failures) do
  print("FAILED " .. failure)
end
print(("%d checks, %d failed"):format(count, #failures))
