// `tacho view FILE...`: a page in the browser with everything that a trace holds.
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/output_file.h"
#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/findings.h"
#include "cli/shared/open_trace.h"
#include "view/document.h"

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

int write_page(view::Document& document, const std::string& output, bool overwrite) {
  if (document.runs().size() > 1)
    return complain(kBadInput,
                    "-o writes one run into a page; give one trace, or leave -o out to compare several");
  auto target = OutputFile::create(output, overwrite);
  if (!target) return complain(kBadInput, target.error().message);
  const auto page = view::embedded_page(document);
  if (!page) return complain(kBadInput, page.error().message);
  target->write(*page);
  if (const Status done = target->commit(); !done) return complain(kBadInput, done.error().message);
  print_outputs({&output, 1});
  return kOk;
}

}  // namespace

int run_view(int argc, char** argv) {
  CLI::App app(
      "A page in the browser: overview, timeline, search and SQL over traces of any format and size. It "
      "serves on "
      "127.0.0.1 until Ctrl-C.",
      "tacho view");
  app.footer(
      "Examples:\n"
      "  tacho view app.tacho\n"
      "  tacho view before.tacho after.tacho      both in one page\n"
      "  tacho view app.tacho -o app.html         a page to send to somebody\n"
      "On another machine: ssh -L 8050:127.0.0.1:8050 HOST, then open the printed address here.");
  std::vector<std::string> files;
  std::optional<uint16_t> port;
  std::string output;
  bool no_open = false, overwrite = false;
  app.add_option("file", files, "traces")->required();
  app.add_option("--port", port, "port on 127.0.0.1 (default: 8050, or any free one if that is taken)");
  app.add_flag("--no-open", no_open, "print the address and open no browser");
  app.add_option("-o,--output", output, "write one page that needs no server, and end");
  app.add_flag("--overwrite", overwrite, "replace an existing page");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  view::Document document;
  for (const std::string& file : files) {
    auto trace = open_trace(file);
    if (!trace) return complain(kBadInput, trace.error().message);
    document.add(file, std::move(*trace), {}, findings_of);
  }
  if (!output.empty()) return write_page(document, output, overwrite);
  auto server = report::HttpServer::listen(port, "--port");
  if (!server) return complain(kBadInput, server.error().message);
  std::printf("%s\n", server->url().c_str());
  std::fflush(stdout);
  complain(kOk, "serving until Ctrl-C");
  if (!no_open) open_browser(server->url());
  const Status served =
      server->serve([&](const report::HttpRequest& request) { return document.answer(request); });
  const int code = served ? static_cast<int>(kOk) : complain(kBadInput, served.error().message);
  // Findings of a large trace may be under way, in a thread that cannot be asked to stop: nobody waits for them any more.
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace tacho::cli
