--- Choosing one of many: telescope or fzf-lua where they are there, else vim.ui.select.
local M = {}

local function with_telescope(items, options, callback)
  local pickers = require("telescope.pickers")
  local finders = require("telescope.finders")
  local values = require("telescope.config").values
  local actions = require("telescope.actions")
  local action_state = require("telescope.actions.state")
  pickers
    .new({}, {
      prompt_title = options.prompt,
      finder = finders.new_table({
        results = items,
        entry_maker = function(item)
          local shown = options.format(item)
          return { value = item, display = shown, ordinal = shown }
        end,
      }),
      sorter = values.generic_sorter({}),
      attach_mappings = function(prompt)
        actions.select_default:replace(function()
          local chosen = action_state.get_selected_entry()
          actions.close(prompt)
          callback(chosen and chosen.value)
        end)
        return true
      end,
    })
    :find()
end

local function with_fzf(items, options, callback)
  local lines, by_line = {}, {}
  for index, item in ipairs(items) do
    local line = ("%d %s"):format(index, options.format(item))
    lines[index] = line
    by_line[line] = item
  end
  require("fzf-lua").fzf_exec(lines, {
    prompt = options.prompt .. "> ",
    actions = {
      ["default"] = function(selected)
        callback(selected and by_line[selected[1]])
      end,
    },
  })
end

--- Lets the person choose; `callback(nil)` where they leave.
---@param items any[]
---@param options {prompt: string, format: fun(item: any): string}
---@param callback fun(item?: any)
function M.choose(items, options, callback)
  if pcall(require, "telescope.pickers") then
    with_telescope(items, options, callback)
  elseif pcall(require, "fzf-lua") then
    with_fzf(items, options, callback)
  else
    vim.ui.select(items, { prompt = options.prompt, format_item = options.format, kind = "compactd" }, callback)
  end
end

return M
