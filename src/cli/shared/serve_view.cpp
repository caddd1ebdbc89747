// The address, the browser, the server (serve_view.h).
#include "cli/shared/serve_view.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cli/command.h"

extern char** environ;

namespace tacho::cli {
namespace {

// Opens the address in a browser where there is a screen; what the browser prints is not for this terminal.
void open_browser(const std::string& url) {
  if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
  std::string program = "xdg-open", address = url;
  char* arguments[] = {program.data(), address.data(), nullptr};
  pid_t child = 0;
  posix_spawnp(&child, program.c_str(), &files, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
}

}  // namespace

int serve_view(view::Document& document, std::optional<uint16_t> port, bool open, int failure) {
  auto server = report::HttpServer::listen(port, "--port");
  if (!server) return complain(failure, server.error().message);
  std::printf("%s\n", server->url().c_str());
  std::fflush(stdout);
  complain(kOk, "serving until Ctrl-C");
  if (open) open_browser(server->url());
  const Status served =
      server->serve([&](const report::HttpRequest& request) { return document.answer(request); });
  return served ? static_cast<int>(kOk) : complain(failure, served.error().message);
}

}  // namespace tacho::cli
