// Common declarations of the imitation's files (sdk.cpp describes it).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "abi.h"

namespace imitation {

inline bool operator<(Id a, Id b) {
  return a.handle < b.handle;
}

using BufferCallback = void(Id context, Id buffer, Header** headers, size_t count, void* data, uint64_t dropped);
using ExternalCallback = int(uint64_t thread, Id context, int32_t kind, int32_t operation, uint64_t correlation,
                             uint64_t* external, void* data);

struct Record {
  uint32_t category, kind;
  std::vector<std::byte> bytes;
};
struct Buffer {
  Id context{};
  uint64_t number = 0;
  size_t watermark = 0, bytes = 0;
  BufferCallback* callback = nullptr;
  void* data = nullptr;
  std::mutex mutex;
  std::vector<Record> records;
};
struct Context {
  std::atomic<bool> active{false};
  Context() = default;
  Context& operator=(const Context&) { return *this; }
};
struct Traced {
  struct Kind {
    uint64_t buffer = 0;
    std::set<int32_t> operations;  // empty = all
  };
  std::map<int32_t, Kind> kinds;
};
struct Callback {
  Id context;
  void* function;
  void* data;
};
struct External {
  Id context;
  ExternalCallback* callback;
  void* data;
};

struct State {
  bool started = false;
  std::atomic<bool> finished{false};
  Tool* tool = nullptr;
  std::map<uint64_t, Context> contexts;
  std::map<uint64_t, std::unique_ptr<Buffer>> buffers;
  std::map<Id, Traced> traced;
  std::vector<Callback> code_object_callbacks;
  std::map<int32_t, External> external;
  std::vector<Agent> agents;
  uint32_t gpus = 0;
  std::vector<void*> hip[2];  // HIP's functions: runtime, compiler
};
State& state();

/// The value of a word of TACHO_SDK ("1" for one without a value), "" where it is not there.
std::string scenario(const std::string& key);
/// True if the layouts of 0.6 are wanted.
bool narrow();
/// ns, CLOCK_BOOTTIME.
uint64_t now();
uint64_t thread_id();
/// The number that this version has for a kind of records in buffers.
int32_t buffer_kind(const char* name);
/// Puts a record into the buffers that want it.
void put(const char* kind, int32_t operation, const void* record, size_t bytes);
/// Appends a record to the buffer of this number.
void append(uint64_t buffer, uint32_t category, uint32_t kind, const void* record, size_t bytes);
/// The records that the scenario "made" puts beside a kernel.
void put_made_records(uint64_t agent, uint64_t queue, uint64_t time);
/// Of the innermost HIP call that is open on this thread; 0 = none is.
uint64_t current_correlation();

// dispatches.cpp
/// Replaces functions in the table that HSA hands out.
void take_hsa(void* table);
/// The id of the agent that HSA knows by this handle.
Id id_of_agent(uint64_t agent);
/// Waits until enqueued work is done and its records are written: for copies half a second at most, for kernels for
/// ever, as the real library does.
void wait_for_work();

// samples.cpp
/// Hands the code objects of an executable to the callbacks that want them; before its kernels.
void tell_code_objects(uint64_t executable, void* extension_table);
/// Number of the code object with this address; 0 = none.
uint64_t code_object_at(uint64_t address);
/// Samples of a dispatch whose kernel begins at `entry`, if they are wanted.
void put_samples(const DispatchInfo& info, Correlation0 correlation, uint64_t start, uint64_t entry);

}  // namespace imitation
