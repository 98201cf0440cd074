-- What a plugin manager loads at the start: :GraphMend, which sets up with the defaults where no setup() was called.
if vim.g.loaded_graphmend then
  return
end
vim.g.loaded_graphmend = true

if vim.fn.has("nvim-0.7") == 1 and vim.fn.exists(":GraphMend") == 0 then
  vim.api.nvim_create_user_command("GraphMend", function(given)
    require("graphmend").setup() -- replaces this command by its own
    if vim.bo.filetype == "python" then
      vim.cmd("doautocmd <nomodeline> FileType python")
    end
    if given.args ~= "" then
      vim.cmd("GraphMend " .. given.args)
    end
  end, { nargs = "*", desc = "Graph breaks of torch.compile: set up GraphMend" })
end
