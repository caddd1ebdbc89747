// tacho's side of PC sampling on AMD GPUs: turns the records that the target left in the spool
// (vendor/amd/sdk_sampling.h) into samples with instructions and source lines. AMD's comgr disassembles if it is
// installed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "counter/sampled_run.h"

namespace tacho::counter::amd {

/// One process's pieces.
struct SampledProcess {
  struct Gpu {
    uint32_t number = 0;
    std::string architecture;
  };
  struct Code {
    uint64_t base = 0, agent = 0;
    int64_t delta = 0;  ///< address in memory less the address in the file
    bool in_memory = false;
    std::string uri;
  };
  struct Kernel {
    uint64_t code_object = 0, object = 0;
    int64_t entry = 0;  ///< bytes from `object` to the first instruction; 0 = unknown
    uint32_t vector = 0, accumulation = 0, scalar = 0;
    std::string name;
  };
  uint32_t version = 0, pid = 0;
  bool stochastic = false;
  std::map<uint64_t, Gpu> gpus;
  std::map<uint64_t, Code> code;
  std::map<uint64_t, Kernel> kernels;
  std::vector<SampledRun::Ran> dispatches;
  std::vector<SampledRun::Sample> samples;
  uint64_t dropped = 0, invalid = 0, unknown = 0;  ///< by the library; by the GPU; of no known kind
};

/// Adds the pieces in one file's bytes, up to the first malformed one; false when there is one.
bool parse_sampled(std::string_view bytes, SampledProcess& out);

/// A code object's bytes by the addresses in its file. Empty if it is not an ELF file.
class CodeImage {
 public:
  explicit CodeImage(std::string bytes);
  /// The bytes from `address` on, at most `most` of them; "" if nothing is loaded.
  std::string_view at(uint64_t address, size_t most) const;

 private:
  struct Segment {
    uint64_t address, size, offset;
  };
  std::string bytes_;
  std::vector<Segment> segments_;
};

/// The file, offset and size that a code object's URI ("file:///a%20b#offset=4096&size=100") names; false if it
/// names none. A size of 0: up to the end.
bool parse_code_uri(std::string_view uri, std::string& path, uint64_t& offset, uint64_t& size);

/// The samples in the run's folder of dispatches that pass `filter`. `notes` gets a sentence for each missing part.
Result<SampledRun> read_sampled(const std::string& folder, const Filter& filter, std::vector<std::string>& notes);

}  // namespace tacho::counter::amd
