--- An edit that a model asks for, as a diff to accept, change or refuse.
local text = require("compactd.text")

local M = {}

---@class compactd.Edit
---@field path string Whole.
---@field before string
---@field after string

--- The edit that the arguments mean, or what is wrong with them.
---@param path string
---@param old string Empty: a new file.
---@param new string
---@return compactd.Edit? edit
---@return string? problem
function M.plan(path, old, new)
  local file = io.open(path, "rb")
  if file == nil then
    if old ~= "" then
      return nil, "there is no such file"
    end
    return { path = path, before = "", after = new }
  end
  local before = file:read("*a")
  file:close()
  if old == "" then
    return nil, "the file is there: old_text must name what is replaced"
  end
  local from, to = before:find(old, 1, true)
  if from == nil then
    return nil, "old_text is not in the file"
  elseif before:find(old, to + 1, true) then
    return nil, "old_text is in the file more than once: give more of it"
  end
  return { path = path, before = before, after = before:sub(1, from - 1) .. new .. before:sub(to + 1) }
end

local function lines_of(content)
  local lines = vim.split(content, "\n", { plain = true })
  if lines[#lines] == "" then
    lines[#lines] = nil
  end
  return lines
end

--- Puts the edit into the file's buffer, and writes it.
---@param edit compactd.Edit
---@param lines string[]
---@return boolean ok
---@return string? problem
local function write(edit, lines)
  vim.fn.mkdir(vim.fs.dirname(edit.path), "p")
  local buffer = vim.fn.bufadd(edit.path)
  vim.fn.bufload(buffer)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  return pcall(vim.api.nvim_buf_call, buffer, function()
    vim.cmd("silent write")
  end)
end

---@type {accept: fun(), reject: fun()}?
M.current = nil
local queue = {}

local function scratch(lines, filetype, name)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].filetype = filetype
  vim.bo[buffer].bufhidden = "wipe"
  pcall(vim.api.nvim_buf_set_name, buffer, name)
  return buffer
end

local function show(edit, callback)
  vim.cmd("stopinsert") -- what is typed on goes into no diff
  local origin = vim.api.nvim_get_current_win()
  local filetype = vim.filetype.match({ filename = edit.path }) or ""
  local shown = text.line(vim.fn.fnamemodify(edit.path, ":~:."), 60)
  local left = scratch(lines_of(edit.before), filetype, "compactd://before/" .. shown)
  local right = scratch(lines_of(edit.after), filetype, "compactd://after/" .. shown)
  vim.bo[left].modifiable = false
  vim.cmd("tabnew")
  local empty = vim.api.nvim_get_current_buf()
  local tab = vim.api.nvim_get_current_tabpage()
  vim.api.nvim_win_set_buf(0, left)
  vim.cmd("diffthis")
  vim.wo.winbar = " before"
  vim.cmd("rightbelow vsplit")
  vim.api.nvim_win_set_buf(0, right)
  vim.cmd("diffthis")
  vim.wo.winbar = (" %s: ga accept · gr refuse · or change it first"):format((shown:gsub("%%", "%%%%")))
  pcall(vim.api.nvim_buf_delete, empty, { force = true })

  local is_over = false
  local function finish(is_accepted)
    if is_over then
      return
    end
    is_over = true
    M.current = nil
    local lines = vim.api.nvim_buf_is_valid(right) and vim.api.nvim_buf_get_lines(right, 0, -1, false) or {}
    if vim.api.nvim_tabpage_is_valid(tab) and #vim.api.nvim_list_tabpages() > 1 then
      vim.cmd("tabclose " .. vim.api.nvim_tabpage_get_number(tab))
    end
    if vim.api.nvim_win_is_valid(origin) then
      vim.api.nvim_set_current_win(origin)
    end
    if not is_accepted then
      callback(false, "the person refused the edit")
    else
      local ok, problem = write(edit, lines)
      local is_changed = ok and table.concat(lines, "\n") ~= table.concat(lines_of(edit.after), "\n")
      callback(ok, not ok and tostring(problem) or is_changed and "done, with changes by the person" or "done")
    end
    local next_one = table.remove(queue, 1)
    if next_one then
      vim.schedule(next_one)
    end
  end
  M.current = {
    accept = function()
      finish(true)
    end,
    reject = function()
      finish(false)
    end,
  }
  for _, buffer in ipairs({ left, right }) do
    vim.keymap.set("n", "ga", M.current.accept, { buffer = buffer, nowait = true, desc = "Accept the edit" })
    vim.keymap.set("n", "gr", M.current.reject, { buffer = buffer, nowait = true, desc = "Refuse the edit" })
  end
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = right,
    once = true,
    callback = function()
      vim.schedule(function()
        finish(false)
      end)
    end,
  })
end

--- Shows an edit in a tab of its own, one at a time; `callback(is_done, what)` when the person decided.
---@param edit compactd.Edit
---@param callback fun(is_done: boolean, what: string)
function M.ask(edit, callback)
  if M.current then
    queue[#queue + 1] = function()
      show(edit, callback)
    end
  else
    show(edit, callback)
  end
end

--- Writes an edit without asking.
---@param edit compactd.Edit
---@return boolean is_done
---@return string what
function M.apply(edit)
  local ok, problem = write(edit, lines_of(edit.after))
  return ok, ok and "done" or tostring(problem)
end

return M
