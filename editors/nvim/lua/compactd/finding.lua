--- Where the daemon is: the setting, what came with the plugin, the project's Python environment if the person
--- trusts it, PATH.
local config = require("compactd.config")
local paths = require("compactd.paths")

local M = {}

---@class compactd.Place
---@field from "setting"|"bundled"|"project"|"environment"|"PATH"
---@field path string
---@field cmd? string[] Where a daemon is that may be run.
---@field needs_trust? boolean One is there, but it belongs to the project and the person did not `:trust` it.

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

local function is_absolute(path)
  return vim.startswith(path, "/") or path:match("^%a:[/\\]") ~= nil
end

local function has_mark(folder)
  return vim.iter(MARKS):any(function(mark)
    return vim.uv.fs_stat(vim.fs.joinpath(folder, mark)) ~= nil
  end)
end

--- `dir` and those above it up to the outermost project that it is in, below the person's home; `dir` alone where
--- no project is.
---@return string[]
local function project_folders(dir)
  local home = vim.uv.fs_realpath(vim.uv.os_homedir() or "/") or "/"
  local folders, last = { dir }, 1
  for parent in vim.fs.parents(dir) do
    if parent == "/" or parent == home or vim.startswith(home, parent .. "/") then
      break
    end
    folders[#folders + 1] = parent
    if has_mark(parent) then
      last = #folders
    end
  end
  return vim.list_slice(folders, 1, last)
end

--- Whether `path`, as it is written or with its links followed, is in the folder `root`.
local function is_inside(path, root)
  local real_root = vim.uv.fs_realpath(root) or root
  for _, each in ipairs({ vim.fs.normalize(path), vim.uv.fs_realpath(path) or path }) do
    for _, top in ipairs({ root, real_root }) do
      if each == top or vim.startswith(each, top .. "/") then
        return true
      end
    end
  end
  return false
end

--- Whether the person said `:trust` of this file as it is now. Never asks. (`:help :trust`, `:help vim.secure`: a
--- line of the file `trust` is the SHA-256 of a file, a blank, its real path.)
local function is_trusted(path)
  local real = vim.uv.fs_realpath(path)
  local list = io.open(vim.fs.joinpath(vim.fn.stdpath("state"), "trust"), "r")
  local file = real and io.open(real, "rb")
  local answer = false
  if list and file then
    local ok, hash = pcall(vim.fn.sha256, file:read("*a"))
    for line in list:lines() do
      answer = answer or (ok and line == hash .. " " .. real)
    end
  end
  if list then
    list:close()
  end
  if file then
    file:close()
  end
  return answer
end

--- A program of the project itself: it came with whatever was cloned, and is run only once the person trusts it.
local function place_inside(from, path)
  local found = place(from, path)
  if found.cmd and not is_trusted(path) then
    found.cmd = nil
    found.needs_trust = true
  end
  return found
end

--- The program `name` in the absolute entries of PATH that are outside the folder `root`, or nil.
local function on_path(name, root)
  for entry in vim.gsplit(vim.env.PATH or "", WINDOWS and ";" or ":", { plain = true }) do
    local path = is_absolute(entry) and vim.fs.joinpath(entry, name)
    if path and not is_inside(entry, root) and not is_inside(path, root) and vim.fn.executable(path) == 1 then
      return path
    end
  end
  return nil
end

--- Every place that is looked at, in order, for the workspace `dir`.
---@param dir string
---@return compactd.Place[]
function M.places(dir)
  local folders = project_folders(vim.fs.normalize(dir))
  local root = folders[#folders]
  local cmd = config.values.cmd
  if cmd ~= nil then
    cmd = type(cmd) == "string" and { cmd, "serve" } or cmd
    ---@cast cmd string[]
    local first = paths.home(cmd[1] or "")
    if not first:find("[/\\]") then
      first = on_path(first, root) or first
    end
    local whole = vim.list_extend({ first }, vim.list_slice(cmd, 2))
    local there = is_absolute(first) and vim.fn.executable(first) == 1
    return { { from = "setting", path = first, cmd = there and whole or nil } }
  end
  local places = { place("bundled", vim.fs.joinpath(plugin_root(), "bin", NAME)) }
  for _, folder in ipairs(folders) do
    for _, name in ipairs({ ".venv", "venv" }) do
      local inside = vim.fs.joinpath(folder, name)
      if vim.fn.isdirectory(inside) == 1 then
        places[#places + 1] = place_inside("project", vim.fs.joinpath(inside, SCRIPTS, NAME))
      end
    end
  end
  local virtual = vim.env.VIRTUAL_ENV or ""
  if is_absolute(virtual) then
    local path = vim.fs.joinpath(virtual, SCRIPTS, NAME)
    places[#places + 1] = (is_inside(path, root) and place_inside or place)("environment", path)
  end
  local found = on_path(NAME, root)
  places[#places + 1] = found and place("PATH", found) or { from = "PATH", path = NAME }
  return places
end

--- What a person does to have a daemon of the project run.
---@param path string
---@return string
function M.trust_advice(path)
  return ("%s came with this project and is not run. If you trust it: :edit %s | trust, then :Compactd restart"):format(
    path,
    vim.fn.fnameescape(path)
  )
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
  for _, each in ipairs(places) do
    if each.needs_trust then
      return nil, M.trust_advice(each.path)
    end
  end
  return nil,
    "no daemon was found. Install one with `pipx install git+https://example.org/compactd/compactd`, or name it: "
      .. "require('compactd').setup({ cmd = { '/path/to/compactd', 'serve' } }). "
      .. ":checkhealth compactd tells where was looked."
end

return M
