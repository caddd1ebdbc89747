// Recovery of a run whose tacho died (launcher.h): its unfinished trace file up to the last slab, then the pool.
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/clock.h"
#include "base/text/how_many.h"
#include "launch/launcher.h"
#include "tape/pool.h"
#include "trace/store/file.h"
#include "trace/store/layout.h"
#include "trace/trace.h"
#include "trace/write/copy.h"

namespace tacho::launch {

Status recover(const std::string& pool_path, const std::string& output, bool overwrite, bool remove_sources,
               std::vector<std::string>& notes) {
  TACHO_ASSIGN(auto pool, tape::Pool::open(pool_path));
  const tape::PoolHeader& header = pool.header();
  if (kill(static_cast<pid_t>(header.launcher_pid), 0) == 0 && header.launcher_pid != static_cast<uint32_t>(getpid())) {
    // The pid may belong to another program by now. Only a running tacho stops the recovery.
    const std::string exe = fmt::format("/proc/{}/exe", header.launcher_pid);
    char target[4096];
    const ssize_t size = readlink(exe.c_str(), target, sizeof target - 1);
    if (size > 0 && std::string_view(target, static_cast<size_t>(size)).ends_with("/tacho"))
      return fail("{}: its tacho (pid {}) still runs; it will write the trace itself", pool_path, header.launcher_pid);
  }
  trace::WriterOptions options;
  options.overwrite = overwrite;
  const std::string unfinished(header.output, strnlen(header.output, sizeof header.output));
  // Looked for before our own temporary file exists beside it.
  const std::string partial = unfinished.empty() ? std::string() : trace::left_by_killed_writer(unfinished);
  TACHO_ASSIGN(auto writer, trace::TraceWriter::create(output, options));
  {
    if (!partial.empty()) {
      auto part = trace::Trace::open(partial);
      if (part) {
        TACHO_TRY(trace::copy_into(**part, *writer));
        const auto events = (*part)->rows(event::Table::kDispatch) + (*part)->rows(event::Table::kApi) +
                            (*part)->rows(event::Table::kMarker) + (*part)->rows(event::Table::kCopy) +
                            (*part)->rows(event::Table::kSample);
        notes.push_back(fmt::format("took {} from the unfinished {}", how_many(events, "event", "events"), partial));
      } else {
        notes.push_back(part.error().message);
      }
    }
  }
  decode::ClockMap clocks;
  clocks.add(header.first_clocks);
  clocks.add(header.last_clocks);
  clocks.add(sample_clocks());
  decode::Decoder decoder(*writer, clocks);
  tape::Drainer drainer(pool);
  drainer.rewind_definitions();
  const uint64_t bytes = drainer.pass([&](const tape::Piece& piece) { decoder.piece(piece); }, true);
  decoder.finish();
  notes.push_back(fmt::format("took {} bytes of records of {} process{} from the pool", bytes,
                              decoder.processes().size(), decoder.processes().size() == 1 ? "" : "es"));
  for (size_t i = 0; i <= event::kFactTables; ++i)
    if (const uint64_t dropped = header.dropped[i].load(); dropped != 0)
      writer->lose(0, i < event::kFactTables ? static_cast<event::Table>(i) : event::Table::kEnd,
                   event::LossReason::kPoolFull, static_cast<int64_t>(dropped));
  writer->note(0, event::NoteSeverity::kWarning,
               "recovered after tacho was killed: up to two seconds of events before that moment may be missing");
  TACHO_TRY(writer->finish());
  if (remove_sources) {
    ::unlink((pool_path + tape::kRefusedEnding).c_str());
    ::unlink(pool_path.c_str());
    if (!partial.empty()) ::unlink(partial.c_str());
  }
  return {};
}

namespace {

// The process that the name of a hidden recording ends in: ".vcopy.4711.tacho", ".tacho-4711.tacho",
// ".rocprofv3-node1-4711-1764212345.tacho"; 0 = it is none.
pid_t process_of_hidden(std::string_view name) {
  constexpr std::string_view kEnding = ".tacho";
  if (!name.starts_with('.') || !name.ends_with(kEnding)) return 0;
  name.remove_suffix(kEnding.size());
  if (name.starts_with(".rocprofv3-")) name = name.substr(0, name.rfind('-'));
  const std::string_view number = name.substr(name.find_last_of(".-") + 1);
  int pid = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), pid);
  return error == std::errc() && end == number.data() + number.size() && pid > 0 ? pid : 0;
}

bool begins_as_trace(const std::string& path) {
  char magic[sizeof trace::kFileMagic] = {};
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return false;
  const bool read = std::fread(magic, sizeof magic, 1, file) == 1;
  std::fclose(file);
  return read && memcmp(magic, trace::kFileMagic, sizeof magic) == 0;
}

// This user's files whose names say that a tacho wrote them that no longer runs, by name.
std::map<std::string, struct stat> files_left(const std::string& folder) {
  std::map<std::string, struct stat> found;
  DIR* const listing = opendir(folder.empty() ? "." : folder.c_str());
  if (listing == nullptr) return found;
  while (const dirent* entry = readdir(listing)) {
    const std::string name = entry->d_name;
    const std::string path = folder.empty() ? name : folder + "/" + name;
    const pid_t hidden = process_of_hidden(name);
    struct stat status {};
    if ((hidden != 0 || !trace::target_of_partial(name).empty()) && lstat(path.c_str(), &status) == 0 &&
        S_ISREG(status.st_mode) && status.st_uid == getuid() && (hidden == 0 || kill(hidden, 0) != 0) &&
        !trace::has_living_writer(path))
      found.emplace(path, status);
  }
  closedir(listing);
  return found;
}

int64_t events_of(const trace::Trace& trace) {
  int64_t events = 0;
  for (size_t table = 0; table < event::kFactTables; ++table) events += trace.rows(static_cast<event::Table>(table));
  return events;
}

}  // namespace

std::vector<LeftRecording> left_recordings(const std::string& folder) {
  std::vector<LeftRecording> found;
  for (const auto& [path, status] : files_left(folder)) {
    const auto trace = trace::Trace::open(path);
    // A file of another kind may have such a name: tacho's own is empty or begins as all do.
    if (!trace && status.st_size > 0 && !begins_as_trace(path)) continue;
    LeftRecording& left = found.emplace_back();
    left.path = path;
    left.left = int64_t{status.st_mtim.tv_sec} * 1'000'000'000;
    if (!trace) continue;
    left.command = (*trace)->property(event::Table::kEnd, 0, "command").value_or("");
    left.events = events_of(**trace);
  }
  return found;
}

void remove_empty_recordings(const std::string& folder) {
  constexpr int64_t kYoung = 60;            // s
  constexpr int64_t kLargest = 256 * 1024;  // bytes; what is larger has events
  const int64_t now = read_clock(CLOCK_REALTIME) / 1'000'000'000;
  for (const auto& [path, status] : files_left(folder)) {
    if (status.st_size > kLargest || now - status.st_mtim.tv_sec < kYoung) continue;
    if (status.st_size > 0 && !begins_as_trace(path)) continue;
    const auto trace = trace::Trace::open(path);
    if (!trace || events_of(**trace) == 0) ::unlink(path.c_str());
  }
}

std::vector<std::string> abandoned_pools() {
  std::vector<std::string> folders = {"/dev/shm", "/tmp"};
  for (const char* variable : {"TACHO_POOL_DIR", "XDG_RUNTIME_DIR", "TMPDIR"})
    if (const char* folder = getenv(variable); folder != nullptr && *folder != '\0') folders.emplace_back(folder);
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  std::vector<std::string> found;
  for (const std::string& folder : folders) {
    DIR* const listing = opendir(folder.c_str());
    if (listing == nullptr) continue;
    while (const dirent* entry = readdir(listing)) {
      const std::string_view name = entry->d_name;
      if (!name.starts_with("tacho-") || !name.ends_with(".pool")) continue;
      const std::string path = folder + "/" + std::string(name);
      struct stat status {};
      if (stat(path.c_str(), &status) != 0 || status.st_uid != getuid()) continue;
      auto pool = tape::Pool::open(path);
      if (pool && kill(static_cast<pid_t>(pool->header().launcher_pid), 0) == 0) continue;
      found.push_back(path);
    }
    closedir(listing);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tacho::launch
