-- `sections = { lualine_x = { "compactd" } }`: the gauge, coloured where it needs attention.
local Component = require("lualine.component"):extend()

function Component:init(options)
  Component.super.init(self, options)
end

function Component:update_status()
  return require("compactd").statusline()
end

return Component
