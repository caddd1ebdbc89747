// What a framework's allocators did with memory (--memory).
#include <fmt/format.h>

#include "decode/records/process_state.h"
#include "decode/records/record_values.h"
#include "decode/records/samples.h"

namespace tacho::decode {

using event::AllocationOperation;
using event::kUnknown;
using event::Table;
namespace column = event::column;
namespace row = event::row;

void ProcessState::take(const event::BlockMemoryRecord& record, const tape::BlockHeader& block) {
  const uint32_t value = record.header.value, index = value >> 24;
  const auto operation = checked<AllocationOperation>(value & 0xff);
  const auto [found, fresh] = block_memory_.try_emplace({int64_t{index} << 32 | record.name, value & 0xffffff}, 0);
  if (fresh) {
    // Until finish() knows the device, the name keeps those of processes and devices apart.
    const std::string name(text(record.name));
    found.value() = writer_.dimension(row::AllocationShape{
        .operation = operation,
        .memory = checked<event::MemoryKind>(value >> 8 & 0xff),
        .name = writer_.string(index == 0xff ? name : fmt::format("{} of process {}, device {}", name, row(), index)),
        .level = checked<event::AllocationLevel>(value >> 16 & 0xff)});
    block_memory_names_[found->second] = string(record.name);
  }
  const auto told = [](uint64_t bytes) { return bytes >> 63 != 0 ? kUnknown : static_cast<int64_t>(bytes); };
  const bool failed = operation == AllocationOperation::kOutOfMemory;  // what was not given has no size
  const int64_t start = host_time(record.time);
  writer_.add(row::Allocation{.track = thread(block).track,
                              .start = start,
                              .duration = 0,
                              .dim = found->second,
                              .bytes = failed ? kUnknown : told(record.bytes),
                              .address = static_cast<int64_t>(record.address),
                              .stack = samples_ ? samples_->take_memory_stack(thread(block).tid) : 0,
                              .requested = failed ? told(record.bytes) : kUnknown,
                              .in_use = told(record.in_use),
                              .reserved = told(record.reserved)});
  if (!failed) return;
  writer_.add(row::Note{
      .process = row(),
      .start = start,
      .severity = event::NoteSeverity::kWarning,
      .text = writer_.string(fmt::format(
          "GPU {} ran out of memory: {} bytes were asked for{}; tacho memory shows who held them", index, record.bytes,
          told(record.in_use) == kUnknown || told(record.reserved) == kUnknown
              ? std::string()
              : fmt::format(", the allocator had handed out {} and reserved {}", record.in_use, record.reserved)))});
  // The program may be about to die. Errors are the writer's to tell at the end.
  static_cast<void>(writer_.flush());
}

void ProcessState::finish_block_memory() {
  for (const auto& [key, shape] : block_memory_) {
    const int64_t index = key[0] >> 32;
    if (index == 0xff) continue;
    int64_t device = 0;
    for (auto& [kind, decoder] : blocks_)
      if (device == 0) device = decoder->gpu(index);
    if (device == 0)
      device = writer_.dimension(row::Device{
          .kind = event::DeviceKind::kGpu, .index = index, .name = writer_.string(fmt::format("GPU {}", index))});
    writer_.update(Table::kAllocationShape, shape, column::AllocationShape::name, block_memory_names_[shape]);
    writer_.update(Table::kAllocationShape, shape, column::AllocationShape::device, device);
  }
}

}  // namespace tacho::decode
