// Counts PC samples by kernel, instruction and source line while files are read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workload/counter_table.h"
#include "workload/pc_samples/sampled_instruction.h"

namespace tacho::workload {

class SampleCounts {
 public:
  static constexpr size_t kFull = static_cast<size_t>(-1);

  /// Number of an instruction; kFull where there would be more than a million different ones.
  size_t place(std::string_view kernel, std::string_view instruction, std::string_view source);
  /// `reason` is why the wave did not issue the instruction, as the file has it; "" = unknown.
  void add(size_t place, uint64_t count, bool issued, std::string_view reason);
  /// The instructions by falling number of samples, with their reasons in words.
  PcSamples take() &&;

 private:
  PcSamples result_;
  StringMap<size_t> known_;                  // kernel, instruction and source -> index into result_.instructions
  std::vector<StringMap<uint64_t>> stalls_;  // of each instruction
  std::string key_;
};

}  // namespace tacho::workload
