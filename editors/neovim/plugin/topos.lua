-- What the server needs from Neovim: hints and lenses that are on, and commands.
if vim.g.loaded_topos then
  return
end
vim.g.loaded_topos = true

local function client_of(buffer)
  return vim.lsp.get_clients({ bufnr = buffer, name = "topos" })[1]
end

-- Sends a command of the server with the buffer's URI first, and hands its result on.
local function send(command, arguments, handler)
  local buffer = vim.api.nvim_get_current_buf()
  local client = client_of(buffer)
  if client == nil then
    vim.notify("topos is not attached to this buffer", vim.log.levels.WARN)
    return
  end
  local parameters = { command = command, arguments = vim.list_extend({ vim.uri_from_bufnr(buffer) }, arguments or {}) }
  client:request("workspace/executeCommand", parameters, function(failure, result)
    if failure ~= nil then
      vim.notify("topos: " .. failure.message, vim.log.levels.WARN)
    elseif handler ~= nil then
      handler(result)
    end
  end, buffer)
end

-- The name of the entry around the cursor.
local function with_entry(act)
  local buffer = vim.api.nvim_get_current_buf()
  local client = client_of(buffer)
  if client == nil then
    vim.notify("topos is not attached to this buffer", vim.log.levels.WARN)
    return
  end
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local parameters = { textDocument = { uri = vim.uri_from_bufnr(buffer) } }
  client:request("textDocument/documentSymbol", parameters, function(_, symbols)
    for _, symbol in ipairs(symbols or {}) do
      if symbol.range.start.line <= line and line <= symbol.range["end"].line then
        return act(symbol.name)
      end
    end
    vim.notify("topos: the cursor is in no marked entry", vim.log.levels.INFO)
  end, buffer)
end

local function command(name, description, act)
  vim.api.nvim_create_user_command(name, act, { desc = description })
end

-- The action "copy the StableHLO of ENTRY".
vim.lsp.commands["topos.copyStablehlo"] = function(action)
  send("topos.emit", { action.arguments[2] }, function(result) vim.fn.setreg('"', result.text) end)
end

command("ToposPlan", "Open the plan of the entry under the cursor", function()
  with_entry(function(entry) send("topos.openPlan", { entry }) end)
end)
command("ToposStablehlo", "Show the StableHLO of the entry under the cursor, and copy it", function()
  with_entry(function(entry)
    send("topos.emit", { entry, true }, function(result) vim.fn.setreg('"', result.text) end)
  end)
end)
command("ToposTrace", "Trace this buffer again", function() send("topos.retrace") end)
command("ToposTrust", "Trust this buffer's project, so that its entries are run", function() send("topos.trust") end)
command("ToposDistrust", "Trust this buffer's project no more", function() send("topos.distrust") end)
command("ToposHints", "Show or hide the inlay hints", function()
  vim.lsp.inlay_hint.enable(not vim.lsp.inlay_hint.is_enabled({ bufnr = 0 }), { bufnr = 0 })
end)

vim.api.nvim_create_autocmd("LspAttach", {
  group = vim.api.nvim_create_augroup("topos", { clear = true }),
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client == nil or client.name ~= "topos" then
      return
    end
    if vim.g.topos_inlay_hints ~= false then
      vim.lsp.inlay_hint.enable(true, { bufnr = event.buf })
    end
    if vim.g.topos_code_lens ~= false then
      vim.lsp.codelens.refresh({ bufnr = event.buf })
      vim.api.nvim_create_autocmd({ "BufEnter", "InsertLeave", "DiagnosticChanged" }, {
        buffer = event.buf,
        callback = function() vim.lsp.codelens.refresh({ bufnr = event.buf }) end,
      })
    end
  end,
})
