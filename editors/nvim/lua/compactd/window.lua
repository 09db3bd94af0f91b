--- Floating windows over scratch buffers.
local config = require("compactd.config")
local text = require("compactd.text")

local M = {}

--- A scratch buffer of this name, emptied if there is one.
---@param name string
---@param filetype string
---@return integer buffer
function M.buffer(name, filetype)
  local safe = "compactd://" .. text.clean(name)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(buffer) == safe then
      return buffer
    end
  end
  local buffer = vim.api.nvim_create_buf(false, true)
  pcall(vim.api.nvim_buf_set_name, buffer, safe)
  vim.bo[buffer].filetype = filetype
  vim.bo[buffer].bufhidden = "hide"
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].modifiable = false
  return buffer
end

---@param buffer integer
---@param lines string[]
function M.fill(buffer, lines)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

--- More lines at the end.
---@param buffer integer
---@param lines string[]
function M.append(buffer, lines)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, -1, -1, false, lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

--- Columns of a floating window.
---@return integer
function M.width()
  return math.min(vim.o.columns - 2, math.max(40, math.floor(vim.o.columns * config.values.width)))
end

--- Shows a buffer in a floating window, or goes to the one that shows it.
---@param buffer integer
---@param title string
---@param footer? string
---@return integer window
function M.float(buffer, title, footer)
  local shown = vim.fn.win_findbuf(buffer)[1]
  if shown and vim.api.nvim_win_get_tabpage(shown) == vim.api.nvim_get_current_tabpage() then
    vim.api.nvim_set_current_win(shown)
    return shown
  end
  local before = vim.api.nvim_get_current_win()
  local width = M.width()
  local height = math.min(vim.o.lines - 4, math.max(10, math.floor(vim.o.lines * config.values.height)))
  local window = vim.api.nvim_open_win(buffer, true, {
    relative = "editor",
    width = width,
    height = height,
    row = math.floor((vim.o.lines - height) / 2) - 1,
    col = math.floor((vim.o.columns - width) / 2),
    border = "rounded",
    title = " " .. text.line(title, width - 4) .. " ",
    footer = footer and (" " .. text.line(footer, width - 4) .. " ") or nil,
    footer_pos = footer and "right" or nil,
    style = "minimal",
  })
  vim.wo[window].wrap = false
  vim.wo[window].fillchars = "eob: ,fold: "
  vim.wo[window].cursorline = true
  vim.wo[window].winhighlight = "Folded:NormalFloat"
  vim.keymap.set("n", "q", function()
    vim.cmd.close()
    if vim.api.nvim_win_is_valid(before) then
      vim.api.nvim_set_current_win(before) -- Neovim itself goes below all floating windows
    end
  end, { buffer = buffer, nowait = true, desc = "Close" })
  return window
end

--- Shows texts to be read, whole, in a floating window.
---@param name string
---@param title string
---@param lines string[]
---@return integer buffer
function M.read(name, title, lines)
  local buffer = M.buffer(name, "markdown")
  M.fill(buffer, lines)
  local window = M.float(buffer, title, "q close")
  vim.wo[window].wrap = true
  vim.wo[window].linebreak = true
  return buffer
end

return M
