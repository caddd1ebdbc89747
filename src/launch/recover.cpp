// Recovery of a run whose tacho died (launcher.h): its unfinished trace file up to the last slab, then the pool.
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "launch/launcher.h"
#include "tape/pool.h"
#include "trace/store/file.h"
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
        notes.push_back(fmt::format("took {} events from the unfinished {}",
                                    (*part)->rows(event::Table::kDispatch) + (*part)->rows(event::Table::kApi) +
                                        (*part)->rows(event::Table::kMarker) + (*part)->rows(event::Table::kCopy) +
                                        (*part)->rows(event::Table::kSample),
                                    partial));
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
               "recovered after tacho was killed: up to a second of events before that moment may be missing");
  TACHO_TRY(writer->finish());
  if (remove_sources) {
    ::unlink((pool_path + tape::kRefusedEnding).c_str());
    ::unlink(pool_path.c_str());
    if (!partial.empty()) ::unlink(partial.c_str());
  }
  return {};
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
