// Writes PC samples in rocprofv3's forms (sampled_run.h).
#include "counter/sampled_run.h"

#include <array>

#include "base/files/output_file.h"
#include "base/format.h"
#include "base/text/csv.h"
#include "base/text/demangle.h"
#include "base/text/json_writer.h"

namespace tacho::counter {

namespace {

constexpr std::string_view kTypes[] = {"NONE",         "VALU", "MATRIX", "SCALAR",  "TEX",      "LDS",
                                       "LDS_DIRECT",   "FLAT", "EXPORT", "MESSAGE", "BARRIER",  "BRANCH_NOT_TAKEN",
                                       "BRANCH_TAKEN", "JUMP", "OTHER",  "NO_INST", "DUAL_VALU"};
constexpr std::string_view kReasons[] = {
    "NONE",         "NO_INSTRUCTION_AVAILABLE", "ALU_DEPENDENCY",       "WAITCNT",    "INTERNAL_INSTRUCTION",
    "BARRIER_WAIT", "ARBITER_NOT_WIN",          "ARBITER_WIN_EX_STALL", "OTHER_WAIT", "SLEEP_WAIT"};

struct Field {
  const char* name;
  unsigned first, bits;
};
constexpr Field kHardware[] = {{"chiplet", 0, 6},           {"wave_id", 6, 7},        {"simd_id", 13, 2},
                               {"pipe_id", 15, 4},          {"cu_or_wgp_id", 19, 4},  {"shader_array_id", 23, 1},
                               {"shader_engine_id", 24, 5}, {"workgroup_id ", 29, 7}, {"vm_id", 36, 6},
                               {"queue_id", 42, 4},         {"microengine_id", 46, 2}};
constexpr const char* kPipes[] = {"valu",     "matrix", "lds", "lds_direct", "scalar",
                                  "vmem_tex", "flat",   "exp", "misc",       "brmsg"};
constexpr unsigned kIssuedPipes = 5, kStalledPipes = 16, kDualIssue = 27, kReasonBits = 0xf;

template <typename Names>
std::string named(std::string_view prefix, const Names& names, unsigned value) {
  return fmt::format("ROCPROFILER_PC_SAMPLING_INSTRUCTION_{}{}", prefix,
                     value < std::size(names) ? names[value] : "LAST");
}

// Of what could not be disassembled, rocprofv3's own sentence.
std::string source_of(const SampledRun& run, const SampledRun::Sample& sample) {
  return sample.instruction >= 0
             ? run.instructions[static_cast<size_t>(sample.instruction)].source
             : fmt::format("Unrecognized code object id, physical virtual address of PC:{}", sample.offset);
}

void write_samples(const SampledRun& run, OutputFile& file) {
  file.write("\"Sample_Timestamp\",\"Exec_Mask\",\"Dispatch_Id\",\"Instruction\",\"Instruction_Comment\","
             "\"Correlation_Id\"");
  file.write(run.stochastic ? ",\"Wave_Issued_Instruction\",\"Instruction_Type\",\"Stall_Reason\",\"Wave_Count\"\n"
                            : "\n");
  std::vector<std::string> places;  // an instruction's fields
  for (const SampledRun::Instruction& each : run.instructions)
    places.push_back(csv_field(each.text) + "," + csv_field(each.source));
  std::array<std::string, 32> types;
  std::array<std::string, 16> reasons;
  for (unsigned i = 0; i < types.size(); ++i) types[i] = sampled_type_name(i);
  for (unsigned i = 0; i < reasons.size(); ++i) reasons[i] = stall_reason_name(i);
  for (const SampledRun::Sample& each : run.samples) {
    file.write(fmt::format(
        "{},{},{},{},{}", each.time, each.exec_mask, each.dispatch,
        each.instruction >= 0 ? places[static_cast<size_t>(each.instruction)] : "," + csv_field(source_of(run, each)),
        each.correlation));
    if (run.stochastic)
      file.write(fmt::format(",{},{},{},{}", each.issued ? 1 : 0, types[each.type % types.size()],
                             reasons[each.snapshot & kReasonBits], each.waves));
    file.write("\n");
  }
}

void write_dispatches(const SampledRun& run, OutputFile& file) {
  file.write("\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_"
             "Name\","
             "\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_"
             "Count\","
             "\"Accum_VGPR_Count\",\"SGPR_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\","
             "\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n");
  for (const SampledRun::Ran& each : run.dispatches) {
    const ObservedDispatch& d = each.dispatch;
    file.write(fmt::format("\"KERNEL_DISPATCH\",\"Agent {}\",{},0,{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", d.gpu,
                           d.queue, d.tid, each.id, each.kernel, csv_field(d.kernel), each.correlation, d.start, d.end,
                           d.lds, d.scratch, d.arch_vgpr, d.accum_vgpr, d.sgpr, fmt::join(d.workgroup, ","),
                           fmt::join(d.grid, ",")));
  }
}

void write_record(const SampledRun& run, const SampledRun::Sample& each, JsonFileWriter& json) {
  json.begin_object().name("record").begin_object();
  json.name("hw_id").begin_object();
  for (const Field& field : kHardware)
    json.key(field.name).value(each.hardware >> field.first & ((uint64_t{1} << field.bits) - 1));
  json.end_object();
  json.name("pc").begin_object().member("code_object_id", each.code_object);
  json.member("code_object_offset", each.offset).end_object();
  json.member("exec_mask", each.exec_mask).member("timestamp", each.time);
  json.member("dispatch_id", each.dispatch);
  json.name("corr_id").begin_object().member("internal", each.correlation).end_object();
  json.name("wrkgrp_id").begin_object().member("x", each.group[0]).member("y", each.group[1]);
  json.member("z", each.group[2]).end_object();
  if (run.stochastic) {
    json.member("wave_issued", each.issued ? 1 : 0).member("inst_type", sampled_type_name(each.type));
    json.member("wave_cnt", each.waves).name("snapshot").begin_object();
    json.member("stall_reason", stall_reason_name(each.snapshot & kReasonBits));
    json.member("dual_issue_valu", each.snapshot >> kDualIssue & 1);
    for (const auto& [what, first] : {std::pair("issue", kIssuedPipes), std::pair("stall", kStalledPipes)})
      for (unsigned pipe = 0; pipe < std::size(kPipes); ++pipe)
        json.key(fmt::format("arb_state_{}_{}", what, kPipes[pipe])).value(each.snapshot >> (first + pipe) & 1);
    json.end_object();
  }
  json.end_object().member("inst_index", each.instruction).end_object();
}

void write_json(const SampledRun& run, OutputFile& file) {
  JsonFileWriter json(file);
  json.begin_object().name("rocprofiler-sdk-tool").begin_array().begin_object();
  json.name("metadata").begin_object().member("pid", run.pid).name("command").begin_array();
  for (const std::string& word : run.command) json.value(word);
  json.end_array().name("config").begin_object();
  json.member("producer", fmt::format("tacho {}", TACHO_PROGRAM_VERSION)).end_object().end_object();
  json.newline().name("strings").begin_object().name("pc_sample_instructions").begin_array();
  for (const SampledRun::Instruction& each : run.instructions) {
    json.newline_between();
    json.value(each.text);
  }
  json.end_array().name("pc_sample_comments").begin_array();
  for (const SampledRun::Instruction& each : run.instructions) {
    json.newline_between();
    json.value(each.source);
  }
  json.end_array().end_object();
  json.newline().name("kernel_symbols").begin_array();
  for (const SampledRun::Kernel& each : run.kernels) {
    const std::string readable = demangle(each.name);
    json.newline_between();
    json.begin_object().member("kernel_id", each.id).member("code_object_id", each.code_object);
    json.member("kernel_name", each.name).member("kernel_code_entry_byte_offset", each.entry);
    json.member("formatted_kernel_name", readable).member("demangled_kernel_name", readable);
    json.member("truncated_kernel_name", readable.substr(0, readable.find_first_of("(<"))).end_object();
  }
  json.end_array();
  json.newline().name("buffer_records").begin_object().name("kernel_dispatch").begin_array();
  for (const SampledRun::Ran& each : run.dispatches) {
    const ObservedDispatch& d = each.dispatch;
    json.newline_between();
    json.begin_object().member("thread_id", d.tid).name("correlation_id").begin_object();
    json.member("internal", each.correlation).end_object();
    json.member("start_timestamp", d.start).member("end_timestamp", d.end).name("dispatch_info").begin_object();
    json.member("kernel_id", each.kernel).member("dispatch_id", each.id);
    json.member("private_segment_size", d.scratch).member("group_segment_size", d.lds);
    for (const bool grid : {false, true}) {
      const auto& size = grid ? d.grid : d.workgroup;
      json.key(grid ? "grid_size" : "workgroup_size").begin_object().member("x", size[0]);
      json.member("y", size[1]).member("z", size[2]).end_object();
    }
    json.end_object().end_object();
  }
  json.end_array();
  for (const bool stochastic : {false, true}) {
    json.newline().key(stochastic ? "pc_sample_stochastic" : "pc_sample_host_trap").begin_array();
    if (stochastic == run.stochastic)
      for (const SampledRun::Sample& each : run.samples) {
        json.newline_between();
        write_record(run, each, json);
        if (file.failed()) break;
      }
    json.end_array();
  }
  json.end_object().end_object().end_array().end_object();
  file.write("\n");
}

}  // namespace

std::string sampled_type_name(unsigned type) {
  return named("TYPE_", kTypes, type);
}
std::string stall_reason_name(unsigned reason) {
  return named("NOT_ISSUED_REASON_", kReasons, reason);
}
std::string sample_file(const std::string& prefix, bool stochastic) {
  return fmt::format("{}_pc_sampling_{}.csv", prefix, stochastic ? "stochastic" : "host_trap");
}

Status write_sampled_run(const SampledRun& run, const std::string& prefix, const SampledFiles& which, bool overwrite) {
  std::vector<OutputFile> files;
  const auto create = [&](const std::string& path, void (*fill)(const SampledRun&, OutputFile&)) -> Status {
    TACHO_ASSIGN(OutputFile file, OutputFile::create(path, overwrite));
    fill(run, file);
    files.push_back(std::move(file));
    return {};
  };
  if (which.samples) TACHO_TRY(create(sample_file(prefix, run.stochastic), write_samples));
  if (which.dispatches) TACHO_TRY(create(prefix + "_kernel_trace.csv", write_dispatches));
  if (which.json) TACHO_TRY(create(prefix + "_results.json", write_json));
  return OutputFile::commit_all(files);
}

}  // namespace tacho::counter
