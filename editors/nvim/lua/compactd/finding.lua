--- Where the daemon is: the setting, what came with the plugin, the project's Python environment, PATH.
local config = require("compactd.config")
local paths = require("compactd.paths")

local M = {}

---@class compactd.Place
---@field from "setting"|"bundled"|"project"|"environment"|"PATH"
---@field path string
---@field cmd? string[] Where a daemon is.

local WINDOWS = vim.fn.has("win32") == 1
local SCRIPTS = WINDOWS and "Scripts" or "bin"
local NAME = WINDOWS and "compactd.exe" or "compactd"

local function plugin_root()
  local source = debug.getinfo(1, "S").source:sub(2)
  return vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(source)))
end

---@param from string
---@param path string
---@return compactd.Place
local function place(from, path)
  local there = vim.fn.executable(path) == 1
  return { from = from, path = path, cmd = there and { path, "serve" } or nil }
end

local MARKS = { ".git", ".hg", "pyproject.toml", "setup.py" }

--- `dir` and those above it up to the project's root; `dir` alone where no project is: a folder that happens
--- to lie above is nobody's to run programs from.
local function project_folders(dir)
  local folders = { dir }
  local root_folder = vim.fs.root(dir, MARKS)
  for parent in vim.fs.parents(dir) do
    if root_folder == nil or #folders[#folders] <= #root_folder then
      break
    end
    folders[#folders + 1] = parent
  end
  return folders
end

--- Every place that is looked at, in order, for the workspace `dir`.
---@param dir string
---@return compactd.Place[]
function M.places(dir)
  local cmd = config.values.cmd
  if cmd ~= nil then
    cmd = type(cmd) == "string" and { cmd, "serve" } or cmd
    ---@cast cmd string[]
    local first = paths.home(cmd[1] or "")
    local whole = vim.list_extend({ first }, vim.list_slice(cmd, 2))
    return { { from = "setting", path = first, cmd = vim.fn.executable(first) == 1 and whole or nil } }
  end
  local places = { place("bundled", vim.fs.joinpath(plugin_root(), "bin", NAME)) }
  for _, folder in ipairs(project_folders(dir)) do
    for _, name in ipairs({ ".venv", "venv" }) do
      local inside = vim.fs.joinpath(folder, name)
      if vim.fn.isdirectory(inside) == 1 then
        places[#places + 1] = place("project", vim.fs.joinpath(inside, SCRIPTS, NAME))
      end
    end
  end
  if vim.env.VIRTUAL_ENV then
    places[#places + 1] = place("environment", vim.fs.joinpath(vim.env.VIRTUAL_ENV, SCRIPTS, NAME))
  end
  local on_path = vim.fn.exepath(NAME)
  places[#places + 1] = on_path ~= "" and place("PATH", on_path) or { from = "PATH", path = NAME }
  return places
end

--- The first place where a daemon is, or nil and what to do.
---@param dir string
---@return compactd.Place? found
---@return string? advice
function M.find(dir)
  local places = M.places(dir)
  for _, each in ipairs(places) do
    if each.cmd then
      return each
    end
  end
  if places[1].from == "setting" then
    return nil, ("the daemon of your setting `cmd` cannot be run: %s"):format(places[1].path)
  end
  return nil,
    "no daemon was found. Install one with `pip install compactd`, or name it: "
      .. "require('compactd').setup({ cmd = { '/path/to/compactd', 'serve' } }). "
      .. ":checkhealth compactd tells where was looked."
end

return M
