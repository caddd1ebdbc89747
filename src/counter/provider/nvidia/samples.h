// Reads the PC samples that the in-process half leaves (event/spool/spool_samples.h) and finds their instructions and
// source
// lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "counter/provider.h"

namespace tacho::counter::nvidia {

/// One instruction of one function of one module.
struct SampledPlace {
  uint64_t cubin = 0, offset = 0;
  std::string function;                     ///< mangled
  std::map<std::string, uint64_t> reasons;  ///< samples by reason, as CUPTI calls them
};

struct RawSamples {
  std::vector<SampledPlace> places;  ///< by cubin, function and offset
  uint64_t total = 0, dropped = 0;
};

/// Adds the records in one file's bytes to `out`, up to the first malformed one. False when there is one. The keys of
/// `reasons` are CUPTI's indices.
bool parse_samples(std::string_view bytes, const std::map<uint32_t, std::string>& reasons, RawSamples& out);
/// Parses lines of the form "3 smsp__pcsamp_...".
std::map<uint32_t, std::string> parse_reasons(std::string_view text);

/// SASS by function and offset, from the output of `cuobjdump -sass`.
using Disassembly = std::map<std::string, std::map<uint64_t, std::string>, std::less<>>;
Disassembly parse_disassembly(std::string_view text);

/// Where the source of an instruction stands; all empty without -lineinfo.
struct SourcePlace {
  std::string line;  ///< "gemm.cu:42"
  std::string path;  ///< "/home/me/gemm.cu"
};
/// Needs CUPTI but no GPU.
SourcePlace source_place(std::string_view cubin, const std::string& function, uint64_t offset);

/// Samples in a run's folder, of kernels that pass `filter` only. `notes` gets a sentence for each thing missing from
/// them.
Result<std::vector<PcSample>> read_samples(const std::string& folder, const Filter& filter,
                                           std::vector<std::string>& notes);

}  // namespace tacho::counter::nvidia
