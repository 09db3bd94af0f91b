--- What happened, for `:Compactd log`: the daemon's life, what it prints outside the protocol, the traced wire.
local text = require("compactd.text")

local M = {}

local MOST_LINES = 2000
local LONGEST = 2000

---@type string[]
local lines = {}
local buffer = nil ---@type integer?

local function show()
  if not (buffer and vim.api.nvim_buf_is_valid(buffer)) then
    return
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

local show_soon = false

--- Adds what `what` says, each line with the time.
---@param kind string `life`, `stderr`, `daemon`, `→` or `←`.
---@param what string
function M.add(kind, what)
  local stamp = os.date("%H:%M:%S")
  for line in vim.gsplit(what, "\n", { plain = true, trimempty = true }) do
    lines[#lines + 1] = ("%s %-6s %s"):format(stamp, kind, text.clean(line:sub(1, LONGEST)))
  end
  if #lines > MOST_LINES then
    lines = vim.list_slice(lines, #lines - MOST_LINES + 1)
  end
  if buffer and not show_soon then
    show_soon = true
    vim.defer_fn(function()
      show_soon = false
      show()
    end, 100)
  end
end

---@return string[]
function M.lines()
  return vim.deepcopy(lines)
end

--- Opens the log in a split.
function M.open()
  if not (buffer and vim.api.nvim_buf_is_valid(buffer)) then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, "compactd://log")
    vim.bo[buffer].filetype = "compactd-log"
  end
  show()
  vim.cmd("botright split")
  vim.api.nvim_win_set_buf(0, buffer)
  vim.api.nvim_win_set_cursor(0, { vim.api.nvim_buf_line_count(buffer), 0 })
end

return M
