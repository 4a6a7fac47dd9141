-- The server's configuration for `vim.lsp.enable("topos")` (Neovim 0.11 and newer).
-- Add `init_options = { untrustedWorkspace = false }` only if every folder that you open is your own: model code is then run
-- without asking. Without it, `:ToposTrust` trusts one project after another.
return {
  cmd = { "topos", "lsp" },
  filetypes = { "python" },
  root_markers = { "pyproject.toml", ".git" },
  init_options = { copyCommand = "topos.copyStablehlo" },
  settings = { topos = {} },
}
