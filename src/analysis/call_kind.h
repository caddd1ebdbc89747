// What API calls are for, by their names: launching, waiting, copying, managing memory, loading code. Findings tell by
// it what the host did while a device idled.
#pragma once

#include <cstdint>
#include <string_view>

#include "event/schema.h"

namespace tacho::analysis {

enum class CallKind : uint8_t {
  kOther,
  kLaunch,    ///< puts a kernel, a graph or a collective into a queue
  kWait,      ///< returns when the device is done: clFinish, cudaStreamSynchronize, hsa_signal_wait_...
  kCopy,      ///< moves, maps or fills memory, waiting or not
  kAllocate,  ///< gets, frees or registers memory
  kLoad,      ///< compiles and loads code, starts the runtime
  kNone,      ///< no call of a GPU's API: an operator, a Python function, MPI
  kEnd,
};
inline constexpr size_t kCallKinds = static_cast<size_t>(CallKind::kNone);  // those with time of their own

/// By the lists of vendors.def; kOther for a function that they do not have.
CallKind call_kind(event::Domain domain, std::string_view function);

/// What the host does in a range or function, where its name tells.
enum class HostWork : uint8_t {
  kLoading,     ///< a data loader hands out its next batch: "enumerate(DataLoader)#...", "dataloader", "load_batch"
  kCompiling,   ///< a compiler of models works: TorchDynamo's "(dynamo_timed)", Triton's compile, XLA
  kCollecting,  ///< Python's garbage collector: "Python GC" of torch.profiler, gc.collect()
  kInQueue,     ///< a function of the host that a stream waits for: "host function of stream 7"
  kNone,
};
inline constexpr size_t kHostWorks = static_cast<size_t>(HostWork::kNone);
HostWork host_work(std::string_view name);

}  // namespace tacho::analysis
