-- :checkhealth graphmend

local M = {}

-- Neovim 0.10 has other names for the same.
local health = vim.health or require("health")
local report = {
  start = health.start or health.report_start,
  ok = health.ok or health.report_ok,
  warn = health.warn or health.report_warn,
  error = health.error or health.report_error,
}

local function last_line(command)
  local lines = vim.fn.systemlist(command)
  return vim.v.shell_error == 0, lines[#lines] or ""
end

function M.check()
  local options = require("graphmend").options()
  report.start("GraphMend")
  if type(options.cmd) ~= "table" then
    return report.ok("the server is connected to by a function")
  end
  local program = options.cmd[1]
  if vim.fn.executable(program) ~= 1 then
    return report.error(program .. " cannot be run", { "pip install graphmend", 'setup({ cmd = { "/path/to/graphmend", "server" } })' })
  end
  local command = vim.list_slice(options.cmd, 1, #options.cmd - 1)
  local works, version = last_line(vim.list_extend(command, { "--version" }))
  if works then
    report.ok(version .. " (" .. vim.fn.exepath(program) .. ")")
  else
    report.error(program .. " fails: " .. version)
  end
  if #options.trusted == 0 then
    report.warn("no folder is trusted: nothing is verified", { 'setup({ trusted = { "~/src" } }), or :GraphMend trust' })
  end
end

return M
