-- Opens FILE in a real neovim with the server PYTHON, and writes what the user would see to REPORT as JSON.
local python, file, report = vim.env.TOPOS_PYTHON, vim.env.TOPOS_FILE, vim.env.TOPOS_REPORT
local seen = {}

vim.opt.runtimepath:append(vim.env.TOPOS_PLUGIN)
vim.cmd.runtime("plugin/topos.lua")
vim.lsp.config("topos", { cmd = { python, "-m", "topos_lsp", "--stdio" }, settings = { topos = { inlayHints = true } } })
vim.lsp.enable("topos")
vim.cmd("filetype on")
vim.o.lines = 60 -- hints are drawn on visible lines only
vim.cmd.edit(file)
local buffer = vim.api.nvim_get_current_buf()

local function wait(what, test)
  local done = vim.wait(60000, test, 20)
  seen.waited = seen.waited or {}
  seen.waited[what] = done
end

local function diagnostics()
  return vim.tbl_map(function(d)
    return { code = d.code, line = d.lnum + 1, column = d.col, severity = d.severity, message = d.message, source = d.source }
  end, vim.diagnostic.get(buffer))
end

-- The hint that neovim holds for a line; a redraw before it arrives would keep the older one on the screen.
local function label(line)
  for _, hint in ipairs(vim.lsp.inlay_hint.get({ bufnr = buffer })) do
    if hint.inlay_hint.position.line + 1 == line then return hint.inlay_hint.label end
  end
end

-- What is drawn at line ends, by line.
local function drawn()
  local found = {}
  vim.cmd("redraw!")
  for name, space in pairs(vim.api.nvim_get_namespaces()) do
    if name:match("inlayhint") then
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, space, 0, -1, { details = true })) do
        found[tostring(mark[2] + 1)] = vim.trim(table.concat(vim.tbl_map(function(part) return part[1] end, mark[4].virt_text)))
      end
    end
  end
  return found
end

-- The text of the floating window that K opens.
local function hover(line, column)
  vim.api.nvim_win_set_cursor(0, { line, column })
  vim.lsp.buf.hover()
  local text
  vim.wait(10000, function()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= "" then
        text = table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), "\n")
        vim.api.nvim_win_close(window, true)
        return true
      end
    end
  end, 20)
  return text
end

-- Nothing is run before the folder is trusted.
wait("untrusted", function() return #vim.diagnostic.get(buffer) > 0 end)
seen.untrusted = diagnostics()
vim.cmd.ToposTrust()
wait("diagnostic", function() return (vim.diagnostic.get(buffer)[1] or {}).code == "TP101" end)
wait("hints", function() return label(16) ~= nil end)
local client = vim.lsp.get_clients({ bufnr = buffer })[1]
seen.encoding = client.offset_encoding
seen.diagnostics = diagnostics()
seen.hints = drawn()
seen.hover = hover(16, 14)

-- The action that copies.
vim.lsp.buf.code_action({ filter = function(action) return action.title == "copy the StableHLO of hidden_observed" end, apply = true })
wait("copied", function() return vim.fn.getreg('"'):match("stablehlo") ~= nil end)

-- The observation goes, and with it the diagnostic.
vim.api.nvim_buf_set_lines(buffer, 13, 14, false, {})
wait("taken", function() return #vim.diagnostic.get(buffer) == 0 end)
wait("hints_after", function() return (label(15) or ""):match("^taken") ~= nil end)
seen.hints_after = drawn()
client:stop()
wait("stopped", function() return client:is_stopped() end)
vim.fn.writefile({ vim.json.encode(seen) }, report)
vim.cmd("qall!")
