// PC samples one by one, as AMD's GPUs give them, and the files that rocprofv3 and rocprof-compute read of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "counter/provider.h"

namespace tacho::counter {

struct SampledRun {
  /// The instruction at an address of a code object; equal ones are one.
  struct Instruction {
    std::string text;    ///< "v_add_f32_e32 v0, v1, v2"; "" = it could not be disassembled
    std::string source;  ///< "gemm.hip:42"; "" = no debug information
  };
  struct Kernel {
    uint64_t id = 0, code_object = 0;
    uint64_t entry = 0;  ///< of its first instruction in the code object; 0 = unknown
    std::string name;    ///< mangled
  };
  struct Ran {
    ObservedDispatch dispatch;  ///< start and end are CLOCK_BOOTTIME
    uint64_t id = 0, kernel = 0, correlation = 0;
  };
  struct Sample {
    uint64_t time = 0;  ///< ns, as the library states it
    uint64_t exec_mask = 0, dispatch = 0, correlation = 0;
    uint64_t code_object = 0, offset = 0;  ///< code_object 0: `offset` is an address in memory
    uint64_t hardware = 0;                 ///< rocprofiler_pc_sampling_hw_id_v0_t
    int64_t instruction = -1;              ///< index; -1 = its code object is unknown
    uint32_t group[3] = {};
    uint32_t waves = 0,
             snapshot = 0;  ///< stochastic: waves on the unit, rocprofiler_pc_sampling_snapshot_v0_t
    uint8_t type = 0;       ///< stochastic: of the instruction (rocprofiler_pc_sampling_instruction_type_t)
    bool issued = false;
  };

  bool stochastic = false;
  int64_t pid = 0;  ///< of the first process
  std::vector<std::string> command;
  std::vector<Instruction> instructions;
  std::vector<Kernel> kernels;  ///< by id
  std::vector<Ran> dispatches;  ///< by id
  std::vector<Sample> samples;  ///< by dispatch and time
};

/// "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU"; of an unknown number "..._LAST".
std::string sampled_type_name(unsigned type);
/// "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT", likewise.
std::string stall_reason_name(unsigned reason);

/// Name of the file of samples behind `prefix` ("folder/ps_file" gives "folder/ps_file_pc_sampling_host_trap.csv").
std::string sample_file(const std::string& prefix, bool stochastic);

struct SampledFiles {
  bool samples = false;     ///< <prefix>_pc_sampling_<method>.csv
  bool dispatches = false;  ///< <prefix>_kernel_trace.csv
  bool json = false;        ///< <prefix>_results.json
};
/// Writes the files in rocprofv3's forms, all of them or none. A kernel's kernel_code_entry_byte_offset in the JSON is
/// its place in the code object, which rocprof-compute takes it for.
Status write_sampled_run(const SampledRun& run, const std::string& prefix, const SampledFiles& which, bool overwrite);

}  // namespace tacho::counter
