// Adding up PC samples (sample_counts.h).
#include "workload/pc_samples/sample_counts.h"

#include <algorithm>

namespace tacho::workload {
namespace {

constexpr size_t kMostInstructions = size_t{1} << 20;

// "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_ALU_DEPENDENCY" -> "alu dependency"
std::string reason_of(std::string_view text) {
  constexpr std::string_view kMark = "REASON_";
  if (const size_t at = text.find(kMark); at != std::string_view::npos) text.remove_prefix(at + kMark.size());
  std::string out(text);
  for (char& c : out) c = c == '_' ? ' ' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

}  // namespace

size_t SampleCounts::place(std::string_view kernel, std::string_view instruction, std::string_view source) {
  key_.assign(kernel).append(1, '\0').append(instruction).append(1, '\0').append(source);
  if (const auto found = known_.find(key_); found != known_.end()) return found->second;
  if (known_.size() == kMostInstructions) return kFull;
  known_.emplace(key_, result_.instructions.size());
  SampledInstruction& added = result_.instructions.emplace_back();
  added.kernel = kernel;
  added.instruction = instruction;
  added.source = source;
  stalls_.emplace_back();
  return result_.instructions.size() - 1;
}

void SampleCounts::add(size_t place, uint64_t count, bool issued, std::string_view reason) {
  SampledInstruction& at = result_.instructions[place];
  result_.samples += count;
  at.samples += count;
  if (issued) {
    at.issued += count;
  } else if (!reason.empty()) {
    const auto found = stalls_[place].find(reason);
    if (found != stalls_[place].end())
      found->second += count;
    else
      stalls_[place].emplace(std::string(reason), count);
  }
}

PcSamples SampleCounts::take() && {
  for (size_t i = 0; i < stalls_.size(); ++i) {
    auto& reasons = result_.instructions[i].stalls;
    for (const auto& [reason, count] : stalls_[i]) reasons.emplace_back(reason_of(reason), count);
    std::sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
  }
  std::stable_sort(result_.instructions.begin(), result_.instructions.end(),
                   [](const SampledInstruction& a, const SampledInstruction& b) { return a.samples > b.samples; });
  return std::move(result_);
}

}  // namespace tacho::workload
