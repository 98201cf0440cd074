-- GraphMend for Neovim 0.7 and newer: starts the server, keeps lenses fresh, and adds :GraphMend.
--
--   require("graphmend").setup({
--     cmd = { "graphmend", "server" },
--     trusted = { "~/src/models" },                                   -- folders whose code may be run
--     settings = { interpreter = "/path/to/python", verify = { mode = "onSave" } },
--     lens = true,
--   })
--
-- Neovim 0.11 takes the rest from lsp/graphmend.lua; older ones get the same here.

local M = {}

local NAME = "graphmend"
local MARKERS = { "pyproject.toml", "graphmend.toml", "setup.py", ".git" }
local has_config = vim.fn.has("nvim-0.11") == 1

local options = { cmd = { "graphmend", "server" }, trusted = {}, settings = {}, lens = true, on_attach = nil }

local function is_trusted(root)
  root = vim.fn.fnamemodify(root or vim.fn.getcwd(), ":p")
  for _, folder in ipairs(options.trusted) do
    if vim.startswith(root, vim.fn.fnamemodify(vim.fn.expand(folder), ":p")) then
      return true
    end
  end
  return false
end

local function clients(buffer)
  local found = {}
  local all = vim.lsp.get_clients or vim.lsp.get_active_clients
  for _, client in ipairs(all()) do
    if client.name == NAME and (not buffer or vim.lsp.buf_is_attached(buffer, client.id)) then
      table.insert(found, client)
    end
  end
  return found
end

-- A client's methods take the client itself since 0.11.
local function call(client, method, ...)
  if has_config then
    return client[method](client, ...)
  end
  return client[method](...)
end

local function refresh_lenses(buffer)
  if options.lens and #clients(buffer) > 0 and vim.api.nvim_get_current_buf() == buffer then
    vim.lsp.codelens.refresh(has_config and { bufnr = buffer } or nil)
  end
end

local function notify(message, level)
  vim.notify("GraphMend: " .. message, level or vim.log.levels.INFO)
end

--- Runs a command of the server; `done` gets its answer.
function M.execute(command, arguments, done)
  local buffer = vim.api.nvim_get_current_buf()
  local client = clients(buffer)[1]
  if not client then
    return notify("no server for this buffer", vim.log.levels.WARN)
  end
  local params = { command = NAME .. "." .. command, arguments = arguments }
  call(client, "request", "workspace/executeCommand", params, function(failure, answer)
    if failure then
      notify(failure.message, vim.log.levels.ERROR)
    elseif done then
      done(answer, buffer)
    end
  end, buffer)
end

local function verify(position)
  local arguments = { vim.uri_from_bufnr(0) }
  if position then
    local at = vim.api.nvim_win_get_cursor(0)
    arguments[2] = { line = at[1] - 1, character = 0 }
  end
  M.execute("verify", arguments, function(outcome, buffer)
    notify(outcome.message)
    refresh_lenses(buffer)
  end)
end

local function explain(code)
  if not code then
    local here = vim.api.nvim_win_get_cursor(0)[1] - 1
    for _, found in ipairs(vim.diagnostic.get(0, { lnum = here })) do
      code = code or found.source == NAME and tostring(found.code or "") or nil
    end
  end
  if not code or code == "" then
    return notify("no finding on this line; name a rule, such as :GraphMend explain GM101", vim.log.levels.WARN)
  end
  M.execute("explain", { code }, function(text)
    vim.lsp.util.open_floating_preview(vim.split(text, "\n"), "markdown", { border = "single", focus_id = NAME })
  end)
end

local function trust()
  for _, client in ipairs(clients()) do
    local root = client.config.root_dir or vim.fn.getcwd()
    table.insert(options.trusted, root)
    call(client, "notify", "graphmend/didChangeTrust", { trusted = true })
    notify("the code of " .. root .. " may be run until Neovim ends")
  end
end

local function restart()
  local buffers = {}
  for _, client in ipairs(clients()) do
    vim.list_extend(buffers, vim.tbl_filter(function(b) return vim.lsp.buf_is_attached(b, client.id) end, vim.api.nvim_list_bufs()))
    vim.lsp.stop_client(client.id)
  end
  local wait = vim.loop.new_timer()
  wait:start(50, 50, vim.schedule_wrap(function()
    if #clients() == 0 and not wait:is_closing() then
      wait:close()
      for _, buffer in ipairs(buffers) do
        vim.api.nvim_buf_call(buffer, function() vim.cmd("doautocmd FileType python") end)
      end
    end
  end))
end

local COMMANDS = {
  mend = function() M.execute("mendFile", { vim.uri_from_bufnr(0) }) end,
  verify = function(argument) verify(argument ~= "file") end,
  explain = explain,
  lens = function() vim.lsp.codelens.run() end,
  trust = trust,
  restart = restart,
}

local function define_command()
  vim.api.nvim_create_user_command("GraphMend", function(given)
    local name, argument = given.fargs[1], given.fargs[2]
    if not COMMANDS[name] then
      return notify("no command " .. name, vim.log.levels.ERROR)
    end
    COMMANDS[name](argument)
  end, {
    nargs = "+",
    desc = "GraphMend: mend, verify [file], explain [CODE], lens, trust, restart",
    complete = function(lead, line)
      local names = line:match("^%s*GraphMend%s+verify%s") and { "file" } or vim.tbl_keys(COMMANDS)
      table.sort(names)
      return vim.tbl_filter(function(name) return vim.startswith(name, lead) end, names)
    end,
  })
end

local function on_attach(client, buffer)
  local group = vim.api.nvim_create_augroup("graphmend_" .. buffer, { clear = true })
  vim.api.nvim_create_autocmd({ "BufEnter", "InsertLeave", "BufWritePost" }, {
    group = group,
    buffer = buffer,
    callback = function() refresh_lenses(buffer) end,
  })
  refresh_lenses(buffer)
  if options.on_attach then
    options.on_attach(client, buffer)
  end
end

local function configuration()
  local settings = next(options.settings) and options.settings or vim.empty_dict() -- an empty table would be sent as a list
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.experimental = { graphmend = { checked = true } }
  return {
    cmd = options.cmd,
    capabilities = capabilities,
    settings = { graphmend = settings },
    on_attach = on_attach,
    before_init = function(params, config)
      -- Neovims before 0.8 are not asked for settings
      params.initializationOptions = { trusted = is_trusted(config.root_dir), settings = settings }
    end,
    handlers = {
      -- a check has ended, also one on save: the lenses say what it found
      ["graphmend/checked"] = function(_, outcome)
        if outcome.status ~= "running" then
          refresh_lenses(vim.uri_to_bufnr(outcome.uri))
        end
      end,
      ["workspace/codeLens/refresh"] = function()
        refresh_lenses(vim.api.nvim_get_current_buf())
        return vim.NIL
      end,
    },
  }
end

-- The folder of a project, for Neovims that do not look for it themselves.
local function root_of(file)
  local folder = vim.fn.fnamemodify(file, ":p:h")
  local nearest = folder
  local length = 0
  for _, marker in ipairs(MARKERS) do
    for _, find in ipairs({ vim.fn.findfile, vim.fn.finddir }) do
      local found = find(marker, vim.fn.escape(folder, " ,;") .. ";")
      if found ~= "" then
        local around = vim.fn.fnamemodify(found, ":p:h" .. (vim.fn.isdirectory(found) == 1 and ":h" or ""))
        if #around > length then
          nearest, length = around, #around
        end
      end
    end
  end
  return nearest
end

local function start(buffer)
  local config = vim.tbl_extend("force", configuration(), { name = NAME, root_dir = root_of(vim.api.nvim_buf_get_name(buffer)) })
  for _, client in ipairs(clients()) do
    if client.config.root_dir == config.root_dir then
      return vim.lsp.buf_attach_client(buffer, client.id)
    end
  end
  local id = vim.lsp.start_client(config)
  if id then
    vim.lsp.buf_attach_client(buffer, id)
  end
end

--- What setup() was given, with the defaults.
function M.options()
  return options
end

function M.setup(given)
  options = vim.tbl_extend("force", options, given or {})
  define_command()
  -- a function, which Neovim takes too, connects by itself
  if type(options.cmd) == "table" and vim.fn.executable(options.cmd[1]) ~= 1 then
    local advice = "pip install graphmend, or name it in setup({ cmd = { \"/path/to/graphmend\", \"server\" } })"
    return notify(options.cmd[1] .. " cannot be run: " .. advice, vim.log.levels.WARN)
  end
  if has_config then
    vim.lsp.config(NAME, configuration())
    vim.lsp.enable(NAME)
    return
  end
  vim.api.nvim_create_autocmd("FileType", {
    group = vim.api.nvim_create_augroup("graphmend", { clear = true }),
    pattern = "python",
    callback = function(event) start(event.buf) end,
  })
end

return M
