// libFuzzer target of rocprofv3's input files: any bytes as text, YAML or JSON end in jobs or in one sentence.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cli/personalities/rocprofv3/options.h"
#include "fuzz/text_mutator.h"

namespace {
constexpr const char* kNames[] = {"f.txt", "f.yaml", "f.json"};
constexpr const char* kDocuments[] = {
    "# passes\npmc: SQ_WAVES GRBM_COUNT\npmc: TCC_HIT[0] # one\n",
    "jobs:\n  - kernel_trace: true\n    output_format: [csv, pftrace]\n    "
    "summary_units: usec\n    collection_period: ['1:2:3']\n"
    "  - pmc: [A, B]\n    kernel_include_regex: \"a.*\"\n    &x log_level: info\n  - "
    "pmc_groups: [[A], [B, C]]\n    pmc_group_interval: 3\n",
    "{\"jobs\": [{\"sys_trace\": true, \"stats\": \"yes\", \"output_file\": \"\\u0041\", \"pmc\": "
    "[\"A\"]},\n\t{\"att\": false, \"agent_index\": \"absolute\"}]}"};
}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  // The first byte says which kind of file it is.
  const unsigned kind = size == 0 || seed % 16 == 0 ? seed / 16 % 3 : data[0] % 3;
  std::string text = size == 0 ? std::string() : std::string(reinterpret_cast<const char*>(data) + 1, size - 1);
  text = tacho::fuzz::mutated_text(
      std::move(text), kDocuments[kind],
      {"kernel_trace", "pmc", "jobs", "output_file", "no", "true", "~", "*x", "&x", "!!int", "<<", "|", ">-"},
      max_size - 1, seed);
  return tacho::fuzz::put(std::string(1, static_cast<char>(kind)) + text, data);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacho::cli::rocprofv3;
  if (size == 0) return 0;
  const auto jobs = parse_input(kNames[data[0] % 3], std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  if (!jobs) {
    const std::string& message = jobs.error().message;
    if (message.empty() || message.size() > 500 || message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  if (jobs->empty()) std::abort();
  for (const InputJob& job : *jobs)
    for (const auto& [name, words] : job.given.all())
      if (find_option(name) == nullptr || words.empty()) std::abort();
  return 0;
}
