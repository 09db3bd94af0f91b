--- Text for the screen: what others wrote, made harmless; numbers as a person reads them.
local M = {}

local function code(char)
  return ("<%04x>"):format(vim.fn.char2nr(char))
end

--- `text` with every character that would not show itself written out: `<1b>` for an escape, `<202e>` for a
--- mark that turns the writing direction. Line ends and tabs stay.
---@param text string
---@return string
function M.clean(text)
  if not text:find("[%z\1-\8\11-\31\127\194\216\226]") then
    return text -- nearly every text
  end
  text = text:gsub("\r\n", "\n")
  text = text:gsub("[%z\1-\8\11-\31\127]", function(char)
    return ("<%02x>"):format(char:byte())
  end)
  text = text:gsub("\194[\128-\159]", code) -- C1 controls
  text = text:gsub("\216\156", code) -- U+061C
  text = text:gsub("\226\128[\142\143\168-\174]", code) -- U+200E, 200F, 2028 to 202E
  text = text:gsub("\226\129[\166-\169]", code) -- U+2066 to 2069
  return text
end

--- The first line of `text` that says something, at most `width` columns.
---@param text string
---@param width integer
---@return string
function M.line(text, width)
  local first = vim.trim(M.clean(text:match("[^\n]*%S[^\n]*") or "")):gsub("%s+", " ")
  if #first <= width then
    return first
  elseif not first:find("[\128-\255]") then
    return first:sub(1, width - 1) .. "…"
  elseif #first > 8 * width then
    first = vim.fn.strcharpart(first, 0, width + 1)
  end
  if vim.fn.strdisplaywidth(first) <= width then
    return first
  end
  local cut = vim.fn.strcharpart(first, 0, width - 1)
  while vim.fn.strdisplaywidth(cut) > width - 1 do
    cut = vim.fn.strcharpart(cut, 0, vim.fn.strchars(cut) - 1)
  end
  return cut .. "…"
end

--- `82,140`; `?` where nothing is known.
---@param number? number
---@return string
function M.number(number)
  if type(number) ~= "number" then
    return "?"
  end
  local digits = ("%.0f"):format(number)
  local grouped = digits:reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (grouped:gsub("^,", ""))
end

--- `1 message`, `3 messages`.
---@param count integer
---@param noun string
---@return string
function M.count(count, noun)
  return ("%s %s%s"):format(M.number(count), noun, count == 1 and "" or "s")
end

--- How long ago a Unix time was, in one word.
---@param at number
---@return string
function M.ago(at)
  local seconds = math.max(0, os.time() - at)
  if seconds < 90 then
    return "now"
  elseif seconds < 5400 then
    return ("%d min"):format(seconds / 60)
  elseif seconds < 129600 then
    return ("%d h"):format(seconds / 3600)
  end
  return ("%d d"):format(seconds / 86400)
end

--- What a message says, as text: its blocks one after the other.
---@param message any
---@return string
function M.message(message)
  if type(message) ~= "table" then
    return ""
  end
  local content = message.content
  if type(content) == "string" then
    return content
  end
  local parts = {}
  for _, block in ipairs(type(content) == "table" and content or {}) do
    parts[#parts + 1] = M.block(block)
  end
  return table.concat(parts, "\n")
end

--- What a block of a message says, as text.
---@param block any
---@return string
function M.block(block)
  if type(block) ~= "table" then
    return tostring(block)
  elseif block.type == "tool_call" then
    return ("→ %s %s"):format(tostring(block.name), vim.json.encode(block.arguments or vim.empty_dict()))
  elseif block.type == "tool_result" then
    return M.message(block)
  elseif type(block.text) == "string" then
    return block.text
  end
  return ("[%s]"):format(tostring(block.type))
end

return M
