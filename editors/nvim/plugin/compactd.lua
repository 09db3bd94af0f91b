-- Registers the command and nothing else: what it does is loaded when it is first used.
if vim.g.loaded_compactd then
  return
end
vim.g.loaded_compactd = 1

if vim.fn.has("nvim-0.10") == 0 then
  vim.cmd([[command! -nargs=* -bang Compactd echo "compactd: this needs Neovim 0.10 or newer; :checkhealth compactd tells more"]])
  return
end

vim.api.nvim_create_user_command("Compactd", function(command)
  require("compactd.command").run(command)
end, {
  nargs = "*",
  bang = true,
  desc = "compactd: how full the context is, what is in it, compaction and its undoing",
  complete = function(lead, line)
    return require("compactd.command").complete(lead, line)
  end,
})
