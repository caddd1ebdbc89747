// A process with one thread whose framework allocates memory of one GPU.
#pragma once

#include <memory>
#include <string>

#include "analysis/memory/memory.h"
#include "trace/rows.h"

namespace tacho::analysis {

using event::AllocationLevel;
using event::AllocationOperation;
using event::kUnknown;
namespace row = event::row;

struct MemoryMaker {
  std::unique_ptr<trace::TraceWriter> writer = trace::must(trace::TraceWriter::create_temporary());
  int64_t process = writer->dimension(row::Process{.pid = 7, .name = writer->string("train")});
  int64_t thread = writer->dimension(row::Thread{.process = process, .tid = 7});
  int64_t track = writer->dimension(
      row::Track{.kind = event::TrackKind::kThread, .process = process, .thread = thread, .native = 7});
  int64_t device =
      writer->dimension(row::Device{.kind = event::DeviceKind::kGpu, .index = 0, .name = writer->string("Fast")});

  void add(int64_t time, AllocationOperation operation, int64_t address, int64_t bytes,
           AllocationLevel level = AllocationLevel::kBlock, int64_t in_use = kUnknown, int64_t reserved = kUnknown,
           const std::string& name = "tensor") {
    const int64_t shape = writer->dimension(row::AllocationShape{.operation = operation,
                                                                 .memory = event::MemoryKind::kDevice,
                                                                 .device = device,
                                                                 .name = writer->string(name),
                                                                 .level = level});
    writer->add(row::Allocation{.track = track,
                                .start = time,
                                .duration = 0,
                                .dim = shape,
                                .bytes = bytes,
                                .address = address,
                                .in_use = in_use,
                                .reserved = reserved});
  }
  void allocate(int64_t time, int64_t address, int64_t bytes, int64_t in_use = kUnknown, int64_t reserved = kUnknown) {
    add(time, AllocationOperation::kAllocate, address, bytes, AllocationLevel::kBlock, in_use, reserved);
  }
  void free(int64_t time, int64_t address, int64_t bytes = kUnknown, int64_t in_use = kUnknown,
            int64_t reserved = kUnknown) {
    add(time, AllocationOperation::kFree, address, bytes, AllocationLevel::kBlock, in_use, reserved);
  }
  void range(int64_t start, int64_t end, const char* name, const char* category) {
    writer->add(row::Marker{.track = track,
                            .start = start,
                            .duration = end - start,
                            .dim = writer->dimension(row::Label{.name = writer->string(name),
                                                                .kind = event::MarkerKind::kPushPop,
                                                                .domain = writer->string("torch"),
                                                                .category = writer->string(category)})});
  }
  std::shared_ptr<const trace::Trace> trace() { return trace::must(writer->finish_and_open()); }
  MemoryReport report(const MemoryOptions& options = {}) { return trace::must(memory_report(*trace(), options)); }
};

}  // namespace tacho::analysis
