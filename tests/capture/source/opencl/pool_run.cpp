// Running a program on a pool of the test's own (pool_run.h).
#include "capture/source/opencl/pool_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "event/functions/functions_opencl.h"
#include "tape/pool.h"

extern char** environ;

namespace tacho::test {
namespace {

std::string build() {
  const char* const folder = getenv("TACHO_BUILD");
  return folder != nullptr ? folder : "build";
}

template <typename Record>
Record read_record(const std::byte* at) {
  Record record;
  memcpy(&record, at, sizeof record);
  return record;
}

// Reads the pieces of a pool; definitions come before what uses them.
class Reader {
 public:
  explicit Reader(Outcome& run) : run_(run) {}

  void take(const tape::Piece& piece) {
    using event::RecordKind;
    const uint32_t slot = piece.block->process_slot;
    if (piece.block->kind == tape::BlockKind::kProgress) return;  // counts, no records
    size_t at = 0;
    while (at + sizeof(event::RecordHeader) <= piece.bytes.size()) {
      const std::byte* const here = piece.bytes.data() + at;
      const auto header = read_record<event::RecordHeader>(here);
      if (header.size < sizeof header || at + header.size > piece.bytes.size()) {
        run_.problems.push_back("a record with a size that does not fit");
        return;
      }
      at += header.size;
      switch (header.kind) {
        case RecordKind::kString: {
          const auto record = read_record<event::StringRecord>(here);
          run_.strings[{slot, header.value}] =
              std::string(reinterpret_cast<const char*>(here) + sizeof record, record.length);
          break;
        }
        case RecordKind::kProcess: {
          const auto record = read_record<event::ProcessRecord>(here);
          parents_[slot] = record.parent_slot;
          run_.processes.push_back(record);
          break;
        }
        case RecordKind::kDevice: {
          const auto record = read_record<event::DeviceRecord>(here);
          devices_[{slot, header.value}] = record;
          run_.devices.push_back(record);
          break;
        }
        case RecordKind::kQueue: {
          const auto record = read_record<event::QueueRecord>(here);
          if (find(devices_, slot, record.device) == nullptr) run_.problems.push_back("a queue of an unknown device");
          queues_[{slot, header.value}] = record;
          run_.queues.push_back(record);
          break;
        }
        case RecordKind::kKernel: {
          const auto record = read_record<event::KernelRecord>(here);
          kernels_[{slot, header.value}] = record;
          run_.kernels.push_back(record);
          break;
        }
        case RecordKind::kProperty: {
          const auto record = read_record<event::PropertyRecord>(here);
          if (header.value == static_cast<uint32_t>(event::Table::kEnd))
            run_.properties[text(slot, record.key)] = text(slot, record.text);
          break;
        }
        case RecordKind::kNote:
          run_.notes.push_back(text(slot, read_record<event::NoteRecord>(here).text));
          break;
        case RecordKind::kClockPair:
          run_.pairs.push_back(read_record<event::ClockPairRecord>(here));
          break;
        case RecordKind::kLoss: {
          const auto record = read_record<event::LossRecord>(here);
          run_.losses[{static_cast<event::Table>(header.value & 0xff),
                       static_cast<event::LossReason>(header.value >> 8 & 0xff)}] += record.count;
          break;
        }
        case RecordKind::kApi: {
          const auto record = read_record<event::ApiRecord>(here);
          if (record.end < record.start) run_.problems.push_back("an API call that ends before it starts");
          if (record.correlation == 0) run_.problems.push_back("an API call without a correlation");
          if (!correlations_.insert({slot, record.correlation}).second)
            run_.problems.push_back("two API calls with one correlation");
          const std::string name(event::opencl::function_name(static_cast<uint16_t>(header.value)));
          if (name.empty()) run_.problems.push_back("an API call without a name");
          run_.api.push_back({name, static_cast<int16_t>(header.value >> 16), record.start, record.end,
                              record.correlation, piece.block->tid});
          break;
        }
        case RecordKind::kDispatch: {
          const auto record = read_record<event::DispatchRecord>(here);
          Dispatch& dispatch = add_dispatch(slot, record);
          for (int i = 0; i < 3; ++i) {
            dispatch.grid[i] = record.grid[i];
            dispatch.group[i] = record.group[i];
            dispatch.offset[i] = 0;
          }
          break;
        }
        case RecordKind::kDispatchWide: {
          const auto record = read_record<event::DispatchWideRecord>(here);
          Dispatch& dispatch = add_dispatch(slot, record);
          for (int i = 0; i < 3; ++i) {
            dispatch.grid[i] = record.grid[i];
            dispatch.group[i] = record.group[i];
            dispatch.offset[i] = record.offset[i];
          }
          break;
        }
        case RecordKind::kCopy: {
          const auto record = read_record<event::CopyRecord>(here);
          check_queue(slot, record.queue, "a copy");
          run_.copies.push_back(record);
          break;
        }
        case RecordKind::kFill: {
          const auto record = read_record<event::FillRecord>(here);
          check_queue(slot, record.queue, "a fill");
          run_.fills.push_back(record);
          break;
        }
        case RecordKind::kAllocation:
          run_.allocations.push_back(read_record<event::AllocationRecord>(here));
          break;
        case RecordKind::kSync: {
          const auto record = read_record<event::SyncRecord>(here);
          if (record.queue != 0) check_queue(slot, record.queue, "a wait");
          run_.syncs.push_back(record);
          break;
        }
        default:
          break;
      }
    }
  }

 private:
  template <typename Map>
  typename Map::mapped_type* find(Map& map, uint32_t slot, uint32_t number) {
    for (uint32_t level = 0; level < 64; ++level) {
      const auto found = map.find({slot, number});
      if (found != map.end()) return &found->second;
      const auto parent = parents_.find(slot);
      if (parent == parents_.end() || parent->second == event::kUnknown32) return nullptr;
      slot = parent->second;
    }
    return nullptr;
  }
  std::string text(uint32_t slot, uint32_t number) {
    if (number == 0) return {};
    const std::string* const found = find(run_.strings, slot, number);
    if (found == nullptr) run_.problems.push_back("a string that was never defined");
    return found != nullptr ? *found : "?";
  }
  void check_queue(uint32_t slot, uint32_t queue, const char* what) {
    if (find(queues_, slot, queue) == nullptr) run_.problems.push_back(std::string(what) + " on an undefined queue");
  }
  template <typename Record>
  Dispatch& add_dispatch(uint32_t slot, const Record& record) {
    check_queue(slot, record.queue, "a dispatch");
    Dispatch dispatch{};
    dispatch.kernel_number = record.header.value;
    if (const event::KernelRecord* const kernel = find(kernels_, slot, record.header.value)) {
      dispatch.kernel = text(slot, kernel->name);
      dispatch.private_bytes = kernel->private_bytes;
      dispatch.local_bytes = kernel->shared_static;
      dispatch.kind = kernel->kind;
    } else {
      run_.problems.push_back("a dispatch of an undefined kernel");
    }
    dispatch.correlation = record.correlation;
    dispatch.queued = record.queued;
    dispatch.submit = record.submit;
    dispatch.start = record.start;
    dispatch.end = record.end;
    dispatch.queue = record.queue;
    dispatch.ordinal = record.ordinal;
    if (!(dispatch.queued <= dispatch.submit && dispatch.submit <= dispatch.start && dispatch.start <= dispatch.end))
      run_.problems.push_back("a dispatch whose times are out of order");
    run_.dispatches.push_back(dispatch);
    return run_.dispatches.back();
  }

  Outcome& run_;
  std::map<uint32_t, uint32_t> parents_;
  std::map<std::pair<uint32_t, uint32_t>, event::DeviceRecord> devices_;
  std::map<std::pair<uint32_t, uint32_t>, event::QueueRecord> queues_;
  std::map<std::pair<uint32_t, uint32_t>, event::KernelRecord> kernels_;
  std::set<std::pair<uint32_t, uint64_t>> correlations_;
};

}  // namespace

std::string target(const std::string& name) {
  return build() + "/tests/targets/" + name;
}
std::string example(const std::string& name) {
  return build() + "/examples/" + name;
}
std::string library() {
  return build() + "/lib/libtacho.so";
}

size_t Outcome::calls(const std::string& name) const {
  size_t count = 0;
  for (const Api& call : api) count += call.name == name ? 1 : 0;
  return count;
}

const Api* Outcome::call_of(uint64_t correlation) const {
  for (const Api& call : api)
    if (call.correlation == correlation) return &call;
  return nullptr;
}

Outcome run(const std::vector<std::string>& command, const RunOptions& options) {
  Outcome result;
  tape::PoolOptions pool_options;
  pool_options.initial_bytes = options.traced ? options.pool_bytes : 1 << 20;
  pool_options.max_bytes = options.traced ? 512ull << 20 : 1 << 20;
  pool_options.sources = options.sources;
  pool_options.closed = options.start_paused ? tape::gate::kProgram : 0;
  pool_options.flush_period_ms = options.flush_period_ms;
  pool_options.config = options.config;
  auto pool = tape::Pool::create(pool_options);
  if (!pool) {
    ADD_FAILURE() << pool.error().message;
    return result;
  }
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (const char* const equals = strchr(*entry, '='))
      variables[std::string(*entry, static_cast<size_t>(equals - *entry))] = equals + 1;
  variables.erase("TACHO_POOL");
  if (options.traced) {
    variables["TACHO_POOL"] = pool->path();
    if (options.layer) variables["OPENCL_LAYERS"] = library();
    if (options.preload) variables["LD_PRELOAD"] = library();
  }
  for (const auto& [name, value] : options.env) variables[name] = value;
#ifdef TACHO_SANITIZER_RUNTIME
  std::string& preload = variables["LD_PRELOAD"];
  preload = preload.empty() ? TACHO_SANITIZER_RUNTIME : TACHO_SANITIZER_RUNTIME ":" + preload;
  variables["ASAN_OPTIONS"] = "detect_leaks=0";  // of the runtime and its compiler
#endif
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  std::vector<char*> arguments, environment_pointers;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& word : environment) environment_pointers.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  environment_pointers.push_back(nullptr);

  int out[2], err[2];
  if (pipe(out) != 0 || pipe(err) != 0) {
    ADD_FAILURE() << "no pipe";
    return result;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(out[1], 1);
    dup2(err[1], 2);
    for (const int file : {out[0], out[1], err[0], err[1]}) close(file);
    execve(arguments[0], arguments.data(), environment_pointers.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  Reader reader(result);
  tape::Drainer drainer(*pool);
  const tape::Grower grower(*pool);
  const auto sink = [&](const tape::Piece& piece) { reader.take(piece); };
  pollfd files[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  int status = 0;
  bool ended = false;
  while (!ended || files[0].fd >= 0 || files[1].fd >= 0) {
    poll(files, 2, 5);
    char bytes[4096];
    for (int i = 0; i < 2; ++i) {
      if (files[i].fd < 0 || (files[i].revents == 0)) continue;
      const ssize_t size = read(files[i].fd, bytes, sizeof bytes);
      if (size > 0)
        (i == 0 ? result.out : result.err).append(bytes, static_cast<size_t>(size));
      else
        files[i].fd = -1;
    }
    drainer.pass(sink, false);
    if (!ended && waitpid(pid, &status, WNOHANG) == pid) ended = true;
  }
  close(out[0]);
  close(err[0]);
  drainer.pass(sink, true);
  drainer.pass(sink, true);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.launches = pool->header().launches.load();
  for (const auto& count : pool->header().dropped) result.dropped += count.load();
  return result;
}

}  // namespace tacho::test
