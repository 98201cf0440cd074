-- Neovim 0.11 or newer: vim.lsp.enable("graphmend"). Put this file into ~/.config/nvim/lsp/, or editors/nvim on the runtimepath.
---@type vim.lsp.Config
return {
  cmd = { "graphmend", "server" },
  filetypes = { "python" },
  root_markers = { "pyproject.toml", "graphmend.toml", "setup.py", ".git" },
  -- Nothing of a project is run until it is trusted: require("graphmend").setup({ trusted = { "~/src" } }), or :GraphMend trust.
  init_options = { trusted = false },
  settings = { graphmend = vim.empty_dict() },
}
