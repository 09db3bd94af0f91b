--- Paths that a model names, within the workspace.
local M = {}

--- The whole path that `path` means, links followed as far as they exist, and whether it is in the workspace.
---@param path string
---@param workspace? string Default: the current directory.
---@return string whole
---@return boolean is_inside
function M.resolve(path, workspace)
  workspace = vim.uv.fs_realpath(workspace or vim.uv.cwd()) or vim.uv.cwd()
  local whole = path
  if not (vim.startswith(path, "/") or path:match("^%a:[/\\]")) then
    whole = workspace .. "/" .. path
  end
  local parts = {}
  for part in vim.gsplit(whole:gsub("\\", "/"), "/", { plain = true, trimempty = true }) do
    if part == ".." then
      table.remove(parts)
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  whole = (vim.startswith(whole, "/") and "/" or "") .. table.concat(parts, "/")
  local there, rest = whole, ""
  while there ~= "" and there ~= "/" and vim.uv.fs_realpath(there) == nil do
    rest = "/" .. vim.fs.basename(there) .. rest
    there = vim.fs.dirname(there)
  end
  whole = ((vim.uv.fs_realpath(there) or there) .. rest):gsub("^//", "/")
  return whole, whole == workspace or vim.startswith(whole, workspace .. "/")
end

--- `path` with `~` written out, and nothing else: `%` and `#` are parts of names here.
---@param path string
---@return string
function M.home(path)
  return (path:gsub("^~", vim.uv.os_homedir() or "~", 1))
end

return M
