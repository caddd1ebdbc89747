// The beginning of a recording (pool_of_recording.h).
#include "launch/run/pool_of_recording.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/version.h"
#include "launch/environment.h"

namespace tacho::launch {

void describe_recording(trace::TraceWriter& writer, const Recording& recording,
                        const std::vector<std::string>& command) {
  const auto about = [&](std::string_view key, std::string_view value) {
    writer.property(event::Table::kEnd, 0, key, value);
  };
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
  about("command", line);
  about("tacho_version", kProgramVersion);
  if (!program_commit().empty()) about("tacho_commit", program_commit());
  char folder[4096];
  if (getcwd(folder, sizeof folder) != nullptr) about("working_directory", folder);
  utsname system{};
  if (uname(&system) == 0) {
    about("host", system.nodename);
    about("kernel", fmt::format("{} {}", system.sysname, system.release));
    about("machine", system.machine);
  }
  about("cpus", fmt::format("{}", sysconf(_SC_NPROCESSORS_ONLN)));
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (recording.target.api_args) about("api_args", "1");
  if (recording.target.memory) about("memory", "1");
  about("started_unix_ns", fmt::format("{}", now.tv_sec * 1'000'000'000LL + now.tv_nsec));
  for (const auto& [name, value] : recorded_environment()) about("env." + name, value);
}

Result<tape::Pool> make_pool(const Recording& recording, uint64_t max_bytes, std::vector<std::string> folders) {
  choose_host_clock();  // changes of gates are stamped with the clock of the program's records
  tape::PoolOptions options;
  options.initial_bytes = std::min(recording.pool_initial, max_bytes);
  options.max_bytes = max_bytes;
  options.sources = recording.sources | tape::source_bit::kRecording;
  // Closed before the target starts, not after: its first records come at once.
  options.closed = recording.closed_gates();
  options.ignores_program = recording.ignores_program;
  options.flush_period_ms = recording.flush_period_ms;
  options.output = recording.output;
  options.folders = std::move(folders);
  event::Configuration config = recording.target;
  config.start_marker = recording.start_trigger.marker;
  config.stop_marker = recording.stop_trigger.marker;
  auto config_text = event::to_text(config);
  if (!config_text) return fail("--{}", config_text.error().message);
  options.config = std::move(*config_text);
  options.start_launch = recording.start_trigger.launch;
  options.stop_launch = recording.stop_trigger.launch;
  return tape::Pool::create(options);
}

}  // namespace tacho::launch
