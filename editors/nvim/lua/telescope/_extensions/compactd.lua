-- `:Telescope compactd sessions`, `:Telescope compactd search`: the plugin's own commands; it uses telescope by itself.
local function run(...)
  local words = { ... }
  return function(options)
    local whole = vim.list_extend(vim.deepcopy(words), options and options.query and { options.query } or {})
    require("compactd.command").run({ fargs = whole, bang = false })
  end
end

return require("telescope").register_extension({
  exports = { compactd = run("sessions"), sessions = run("sessions"), search = run("search") },
})
