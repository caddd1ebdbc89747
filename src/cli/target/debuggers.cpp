// Knows debuggers by their names (debuggers.h).
#include "cli/target/debuggers.h"

#include <signal.h>

#include <filesystem>

#include "base/format.h"

namespace tacho::cli {

std::string debugger_sentence(const std::vector<std::string>& command, event::Sampler sampler) {
  if (sampler != event::Sampler::kTimer || command.empty()) return {};
  const std::string name = std::filesystem::path(command.front()).filename().string();
  constexpr int kBelowLast = 3;  // capture/source/sampler: SIGRTMAX-3
  if (name.starts_with("lldb"))
    return fmt::format(
        "{} stops at every signal of the sampler: tell it `process handle -s false -n false -p true SIGRTMAX-{}`, or use "
        "--sampler perf",
        name, kBelowLast);
  // gdb, gdbserver, and the vendors' own, whose names end in gdb.
  if (name.starts_with("gdb") || name.ends_with("gdb"))
    return fmt::format("{} stops at every signal of the sampler: tell it `handle SIG{} nostop noprint pass`, or use "
                       "--sampler perf",
                       name, SIGRTMAX - kBelowLast);
  return {};
}

}  // namespace tacho::cli
