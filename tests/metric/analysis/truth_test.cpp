// The bench of truth for rules of real GPUs and CPUs: for each rule a profile folder with its fault planted, and the
// folder that it was made from, without any. A rule must find its fault, be silent where there is none, and be silent
// on the faults of others; docs/metrics.md has the table. tests/e2e/truth_test.py does the same with kernels on the
// virtual GPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "../../workload/folders.h"
#include "base/format.h"
#include "metric/analysis/analysis.h"
#include "metric/catalog/builtin/builtin.h"
#include "metric/catalog/rules.h"
#include "metric/expression/expression.h"

namespace tacho::metric {
namespace {

using Row = std::map<std::string, double>;
using Verdicts = std::map<std::string, bool>;  // slug -> only possible

struct Plant {
  std::string rule;
  Row changes;
  std::set<std::string> also = {};  // faults that the planted one brings with it
  double scale = 1;                 // of all counts and the time
};

struct Bench {
  std::string vendor, architecture;
  std::map<std::string, std::string> machine;
  double duration = 100000;
  Row base;
  std::vector<Plant> plants;
};

// Everything that the rules and bars of an architecture may read: counters (0) and level passes.
void all_inputs(const Catalog& catalog, const RuleBook& book, Row& counters, std::set<std::string>& levels) {
  NameCollector names("per_kernel");
  for_each_leaf(book, [&](const FormulaStep& leaf) {
    const Metric* const metric = catalog.metric(leaf.text);
    if (leaf.op != FormulaOp::kMetric || metric == nullptr) return;
    if (!metric->coll_level.empty()) levels.emplace(metric->coll_level);
    for (const Cell& cell : metric->cells)
      if (!cell.formula.empty())
        if (const auto formula = parse_formula(cell.formula)) names.add(*formula, "");
  });
  for (const std::string& name : names.names())
    if (!name.ends_with("_Timestamp") && name != "SQ_ACCUM_PREV_HIRES" && !name.starts_with("SQ_LEVEL_") &&
        (catalog.vendor == "amd" || !name.starts_with("GRBM_")))  // the collector's default denominator
      counters.try_emplace(name, 0);
}

// Six launches that differ by a percent, as real ones do.
void write_folder(const tacho::testing::Folder& folder, const Bench& bench, const Row& row,
                  const std::set<std::string>& levels, double scale) {
  std::string names, values;
  for (const auto& [name, value] : bench.machine) {
    names += (names.empty() ? "" : ",") + name;
    values += (values.empty() ? "" : ",") + value;
  }
  folder.write("sysinfo.csv", names + "\n" + values + "\n");
  static const std::set<std::string> kExact = {
      "Grid_Size", "Workgroup_Size",          "LDS_Per_Workgroup", "Arch_VGPR", "Accum_VGPR", "Scratch_Per_Workitem",
      "SGPR",      "smsp__warps_launched.sum"};
  const auto table = [&](const std::string& level) {
    std::string out = "Dispatch_ID,Kernel_Name,GPU_ID";
    for (const auto& [name, value] : row)
      if (name.find(':') == std::string::npos) out += "," + name;
    if (!level.empty()) out += ",SQ_ACCUM_PREV_HIRES";
    out += ",Start_Timestamp,End_Timestamp\n";
    for (int i = 0; i < 6; ++i) {
      out += fmt::format("{},kernel,0", i);
      int column = 0;
      const auto jitter = [&] { return 1 + 0.01 * ((i * 7 + ++column * 3) % 11 - 5) / 5.0; };
      const auto shown = [&](const std::string& name, double value) {
        if (kExact.contains(name)) return value;
        // Percentages and ratios of NVIDIA's evaluator do not grow with the launch.
        const bool count = name.find(".pct") == std::string::npos && name.find(".ratio") == std::string::npos;
        return value * jitter() * (count ? scale : 1);
      };
      for (const auto& [name, value] : row)
        if (name.find(':') == std::string::npos) out += fmt::format(",{:.6f}", shown(name, value));
      if (!level.empty()) {
        const auto own = row.find(level + ":SQ_ACCUM_PREV_HIRES");
        out += fmt::format(",{:.6f}", shown("", own == row.end() ? 0.0 : own->second));
      }
      const double start = 1e6 * (i + 1);
      out += fmt::format(",{:.0f},{:.0f}\n", start, start + bench.duration * scale * jitter());
    }
    return out;
  };
  folder.write("pmc_perf.csv", table(""));
  for (const std::string& level : levels) folder.write(level + ".csv", table(level));
}

struct Outcome {
  Verdicts found;
  std::vector<std::string> implausible;
};

Outcome judged(const std::string& folder) {
  AnalysisOptions options;
  options.most_findings = 1000;
  const auto analysis = Analysis::run(folder, options);
  Outcome outcome;
  EXPECT_TRUE(analysis) << (analysis ? "" : analysis.error().message);
  if (!analysis) return outcome;
  for (const Finding& finding : analysis->findings()) {
    outcome.found[finding.slug] = finding.possible;
    EXPECT_FALSE(finding.evidence.empty()) << finding.slug;
    EXPECT_GT(finding.high, 0) << finding.slug;
    EXPECT_LE(finding.low, finding.high) << finding.slug;
    EXPECT_EQ(finding.possible, !finding.doubt.empty()) << finding.slug;
  }
  for (const Implausible& problem : analysis->diagnosis().implausible) outcome.implausible.push_back(problem.text);
  return outcome;
}

/// Judges all folders of a bench; the rows of the table, by rule.
std::map<std::string, std::string> run_bench(const Bench& bench) {
  const Catalog catalog = *load_catalog(bench.architecture);
  const RuleBook book = *load_rules(catalog);
  Row base = bench.base;
  std::set<std::string> levels;
  all_inputs(catalog, book, base, levels);
  std::map<std::string, Outcome> outcomes;
  const auto judge_row = [&](const std::string& name, const Row& row, double scale) {
    tacho::testing::Folder folder;
    write_folder(folder, bench, row, levels, scale);
    outcomes[name] = judged(folder.path());
    EXPECT_TRUE(outcomes[name].implausible.empty())
        << name << ": " << (outcomes[name].implausible.empty() ? "" : outcomes[name].implausible.front());
  };
  judge_row("", base, 1);
  for (const auto& [slug, possible] : outcomes[""].found)
    ADD_FAILURE() << slug << " is found where there is nothing (" << bench.architecture << ")";
  for (const Plant& plant : bench.plants) {
    Row row = base;
    for (const auto& [name, value] : plant.changes) {
      EXPECT_TRUE(base.contains(name) || name.find(':') != std::string::npos) << plant.rule << ": " << name;
      row[name] = value;
    }
    judge_row(plant.rule, row, plant.scale);
  }
  std::map<std::string, std::string> rows;
  for (const Rule& rule : book.rules) {
    const std::string slug(rule.slug);
    const auto own =
        std::find_if(bench.plants.begin(), bench.plants.end(), [&](const Plant& plant) { return plant.rule == slug; });
    EXPECT_NE(own, bench.plants.end()) << slug << " has no folder with its fault";
    const auto found = outcomes[slug].found.find(slug);
    EXPECT_NE(found, outcomes[slug].found.end()) << slug << " does not find its fault";
    if (found == outcomes[slug].found.end()) continue;
    size_t wrong = 0;
    for (const Plant& plant : bench.plants)
      if (plant.rule != slug && !plant.also.contains(slug) && outcomes[plant.rule].found.contains(slug)) {
        ++wrong;
        ADD_FAILURE() << slug << " is found where only " << plant.rule << " was planted";
      }
    rows[slug] = fmt::format("| {} | {} | {} | silent | {} of {} |", slug, bench.vendor,
                             found->second ? "possible" : "found", wrong, bench.plants.size() - 1);
  }
  return rows;
}

const Bench& amd() {
  // 104 compute units for 100 us at 1.6 GHz: busy, and nothing near a limit.
  static const Bench bench = {
      .vendor = "AMD",
      .architecture = "gfx90a",
      .machine = {{"gpu_arch", "gfx90a"},
                  {"gpu_model", "MI200"},
                  {"cu_per_gpu", "104"},
                  {"simd_per_cu", "4"},
                  {"se_per_gpu", "8"},
                  {"wave_size", "64"},
                  {"max_waves_per_cu", "32"},
                  {"max_sclk", "1700"},
                  {"max_mclk", "1600"},
                  {"cur_sclk", "1700"},
                  {"cur_mclk", "1600"},
                  {"total_l2_chan", "32"},
                  {"lds_banks_per_cu", "32"},
                  {"sqc_per_gpu", "56"},
                  {"pipes_per_gpu", "4"},
                  {"num_xcd", "1"},
                  {"num_hbm_channels", "32"},
                  {"hbm_bw", "1638.4"},
                  {"workload_name", "synthetic"}},
      .base = {{"Grid_Size", 665600},
               {"Workgroup_Size", 256},
               {"GRBM_GUI_ACTIVE", 160000},
               {"GRBM_COUNT", 165000},
               {"GRBM_SPI_BUSY", 40000},
               {"SQ_WAVES", 10400},
               {"SPI_CSN_WAVE", 10400},
               {"SPI_CSN_NUM_THREADGROUPS", 2600},
               {"SQ_BUSY_CU_CYCLES", 15e6},
               {"SQ_BUSY_CYCLES", 8 * 150000.0},
               {"SQ_INSTS", 10.4e6},
               {"SQ_INSTS_VALU", 7e6},
               {"SQ_INSTS_SALU", 1e6},
               {"SQ_INSTS_SMEM", 41600},
               {"SQ_INSTS_VMEM", 1e6},
               {"SQ_INSTS_BRANCH", 2e5},
               {"SQ_INSTS_LDS", 1e6},
               {"SQ_ACTIVE_INST_VALU", 9.15e6},
               {"SQ_ACTIVE_INST_SCA", 1e6},
               {"SQ_ACTIVE_INST_MISC", 3e5},
               {"SQ_THREAD_CYCLES_VALU", 64 * 9.15e6},
               {"SQ_WAVE_CYCLES", 1e8},
               {"SQ_WAIT_ANY", 3.5e7},
               {"SQ_WAIT_INST_ANY", 1e7},
               {"SQ_LEVEL_WAVES:SQ_ACCUM_PREV_HIRES", 3.2e8},
               {"TCC_EA_RDREQ_sum", 6.4e5},
               {"TCC_EA_RDREQ_DRAM_sum", 6.4e5},
               {"TCC_EA_WRREQ_sum", 6.4e5},
               {"TCC_EA_WRREQ_64B_sum", 6.4e5},
               {"TCC_EA_WRREQ_DRAM_sum", 6.4e5},
               {"TCC_HIT_sum", 6e5},
               {"TCC_MISS_sum", 6e5},
               {"TCC_REQ_sum", 1.2e6},
               {"TCC_BUSY_sum", 5e6},
               {"TCP_TOTAL_CACHE_ACCESSES_sum", 4e6},
               {"TCP_TOTAL_ACCESSES_sum", 8e6},
               {"TCP_TCC_READ_REQ_sum", 6e5},
               {"TCP_TCC_WRITE_REQ_sum", 6e5},
               {"TCP_GATE_EN1_sum", 1e7},
               {"TCP_PENDING_STALL_CYCLES_sum", 2e6},
               {"TCP_UTCL1_REQUEST_sum", 1e6},
               {"TCP_UTCL1_TRANSLATION_HIT_sum", 9.9e5},
               {"TA_TA_BUSY_sum", 5e6},
               {"TA_TOTAL_WAVEFRONTS_sum", 4e5},
               {"TA_FLAT_WAVEFRONTS_sum", 4e5},
               {"SQ_LDS_IDX_ACTIVE", 3e6},
               {"SQC_ICACHE_HITS", 1e6},
               {"SQC_ICACHE_MISSES", 1e3},
               {"SQC_DCACHE_HITS", 1e6},
               {"SQC_DCACHE_MISSES", 1e4}},
      .plants = {
          {"memory-bandwidth",
           {{"TCC_EA_RDREQ_sum", 1.1e6},
            {"TCC_EA_RDREQ_DRAM_sum", 1.1e6},
            {"TCC_EA_WRREQ_sum", 1e6},
            {"TCC_EA_WRREQ_64B_sum", 1e6},
            {"TCC_EA_WRREQ_DRAM_sum", 1e6}}},
          {"l2-bandwidth", {{"TCC_REQ_sum", 4.5e6}, {"TCC_HIT_sum", 4e6}, {"TCC_MISS_sum", 5e5}}},
          {"vl1d-bandwidth",
           {{"TCP_TOTAL_CACHE_ACCESSES_sum", 1.5e7},
            {"TCP_TOTAL_ACCESSES_sum", 3e7},
            {"TA_TOTAL_WAVEFRONTS_sum", 1.5e6}}},
          {"lds-saturated", {{"SQ_LDS_IDX_ACTIVE", 1.45e7}}},
          {"write-starvation", {{"TCC_TOO_MANY_EA_WRREQS_STALL_sum", 2e6}}},
          {"valu-saturated", {{"SQ_ACTIVE_INST_VALU", 1.4e7}, {"SQ_THREAD_CYCLES_VALU", 64 * 1.4e7}}},
          {"mfma-saturated", {{"SQ_VALU_MFMA_BUSY_CYCLES", 5.3e7}, {"SQ_INSTS_MFMA", 1e6}}},
          {"mfma-starved", {{"SQ_VALU_MFMA_BUSY_CYCLES", 6e6}, {"SQ_INSTS_MFMA", 1e5}, {"SQ_WAIT_ANY", 7e7}}},
          {"half-precision-on-valu", {{"SQ_INSTS_VALU_FMA_F16", 2e6}}},
          {"stray-double-precision", {{"SQ_INSTS_VALU_FMA_F64", 5e5}, {"SQ_INSTS_VALU_FMA_F32", 4e6}}},
          {"unfused-multiply-add", {{"SQ_INSTS_VALU_MUL_F32", 2e6}, {"SQ_INSTS_VALU_ADD_F32", 2e6}}},
          {"transcendental-heavy", {{"SQ_INSTS_VALU_TRANS_F32", 1e6}}},
          {"conversion-heavy", {{"SQ_INSTS_VALU_CVT", 1.2e6}}},
          {"wide-integer-arithmetic", {{"SQ_INSTS_VALU_INT64", 1.5e6}}},
          {"divergence", {{"SQ_THREAD_CYCLES_VALU", 24 * 9.15e6}}},
          {"branch-heavy", {{"SQ_ACTIVE_INST_MISC", 2.5e6}}},
          {"scalar-overhead", {{"SQ_INSTS_SALU", 9e6}, {"SQ_ACTIVE_INST_SCA", 3e6}}},
          {"latency-bound",
           {{"SQ_WAIT_ANY", 7.5e7},
            {"SQ_ACTIVE_INST_VALU", 3e6},
            {"SQ_THREAD_CYCLES_VALU", 64 * 3e6},
            {"TCC_EA_RDREQ_sum", 2e5},
            {"TCC_EA_RDREQ_DRAM_sum", 2e5},
            {"TCC_EA_WRREQ_sum", 2e5},
            {"TCC_EA_WRREQ_64B_sum", 2e5},
            {"TCC_EA_WRREQ_DRAM_sum", 2e5}}},
          {"issue-contention", {{"SQ_WAIT_INST_ANY", 4e7}}},
          {"occupancy-vgprs", {{"SPI_RA_VGPR_SIMD_FULL_CSN", 6.6e6}, {"SQ_LEVEL_WAVES:SQ_ACCUM_PREV_HIRES", 1.3e8}}},
          {"occupancy-lds", {{"SPI_RA_LDS_CU_FULL_CSN", 1.7e6}, {"SQ_LEVEL_WAVES:SQ_ACCUM_PREV_HIRES", 1.3e8}}},
          {"occupancy-workgroups",
           {{"SPI_RA_TGLIM_CU_FULL_CSN", 1.7e6}, {"SQ_LEVEL_WAVES:SQ_ACCUM_PREV_HIRES", 1.3e8}}},
          {"occupancy-barriers", {{"SPI_RA_BAR_CU_FULL_CSN", 1.7e6}, {"SQ_LEVEL_WAVES:SQ_ACCUM_PREV_HIRES", 1.3e8}}},
          {"scratch-limit", {{"SPI_RA_TMP_STALL_CSN", 6e4}}},
          {"grid-too-small", {{"SPI_CSN_NUM_THREADGROUPS", 52}}},
          {"idle-compute-units", {{"SQ_BUSY_CU_CYCLES", 6e6}}},
          {"short-kernel", {}, {}, 0.05},
          {"short-wavefronts",
           {{"SPI_CSN_WAVE", 5e5}, {"SQ_WAVES", 5e5}, {"SQ_INSTS", 1e7}, {"SPI_CSN_NUM_THREADGROUPS", 125000}}},
          {"partial-wavefront", {{"Workgroup_Size", 32}}},
          {"uncoalesced-access", {{"TA_TOTAL_WAVEFRONTS_sum", 1e5}}},
          {"l1-misses",
           {{"TCP_TCC_READ_REQ_sum", 2.5e6},
            {"TCP_TCC_WRITE_REQ_sum", 5e5},
            {"TCP_PENDING_STALL_CYCLES_sum", 6e6},
            {"TCC_EA_WRREQ_sum", 1e5},
            {"TCC_EA_WRREQ_64B_sum", 1e5},
            {"TCC_EA_WRREQ_DRAM_sum", 1e5}}},
          {"l2-misses",
           {{"TCC_HIT_sum", 2e5},
            {"TCC_MISS_sum", 1e6},
            {"TCC_EA_RDREQ_sum", 1.15e6},
            {"TCC_EA_RDREQ_DRAM_sum", 1.15e6},
            {"TCC_EA_WRREQ_sum", 1e5},
            {"TCC_EA_WRREQ_64B_sum", 1e5},
            {"TCC_EA_WRREQ_DRAM_sum", 1e5}}},
          {"tag-conflicts", {{"TCP_READ_TAGCONFLICT_STALL_CYCLES_sum", 3e6}}},
          {"lds-bank-conflicts", {{"SQ_LDS_IDX_ACTIVE", 4e6}, {"SQ_LDS_BANK_CONFLICT", 2e6}}},
          {"lds-address-conflicts", {{"SQ_LDS_ADDR_CONFLICT", 1e6}}},
          {"lds-unaligned", {{"SQ_LDS_UNALIGNED_STALL", 6e5}}},
          {"register-spills", {{"TA_BUFFER_WAVEFRONTS_sum", 1e5}, {"Scratch_Per_Workitem", 64}}},
          {"partial-writes", {{"TCC_EA_WRREQ_64B_sum", 2e5}}},
          {"atomic-contention", {{"TA_FLAT_ATOMIC_WAVEFRONTS_sum", 1.5e5}}},
          {"atomics-beyond-l2", {{"TCC_EA_ATOMIC_sum", 1e5}}},
          {"remote-memory", {{"TCC_EA_RDREQ_DRAM_sum", 3e5}}},
          {"uncached-memory", {{"TCC_EA_RD_UNCACHED_32B_sum", 2e5}}},
          {"address-translation", {{"TCP_UTCL1_TRANSLATION_HIT_sum", 7e5}}},
          {"instruction-cache", {{"SQC_ICACHE_HITS", 6e5}, {"SQC_ICACHE_MISSES", 4e5}}},
          {"scalar-cache", {{"SQC_DCACHE_HITS", 2e5}, {"SQC_DCACHE_MISSES", 8e5}, {"SQ_INSTS_SMEM", 2e5}}},
      }};
  return bench;
}

std::string stalled(const char* reason) {
  return fmt::format("smsp__average_warps_issue_stalled_{}_per_issue_active.ratio", reason);
}

const Bench& nvidia() {
  static const std::string kSm = "sm__throughput.avg.pct_of_peak_sustained_elapsed",
                           kMemory = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                           kDram = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                           kOccupancy = "sm__warps_active.avg.pct_of_peak_sustained_active",
                           kThreads = "smsp__average_thread_inst_executed_pred_on_per_inst_executed.ratio",
                           kLatency = "smsp__average_warp_latency_per_inst_issued.ratio",
                           kUseful = "smsp__sass_average_data_bytes_per_sector_mem_global.ratio";
  static const Bench bench = {
      .vendor = "NVIDIA",
      .architecture = "sm_90",
      .machine = {{"gpu_arch", "sm_90"},
                  {"gpu_model", "H200"},
                  {"gpu_series", "NVIDIA"},
                  {"cu_per_gpu", "132"},
                  {"simd_per_cu", "4"},
                  {"wave_size", "32"},
                  {"max_waves_per_cu", "64"},
                  {"max_blocks_per_sm", "32"},
                  {"registers_per_sm", "65536"},
                  {"shared_per_sm", "233472"},
                  {"shared_reserved", "1024"},
                  {"max_sclk", "1980"},
                  {"num_xcd", "1"},
                  {"version", "tacho 1.0"},
                  {"lds_banks_per_cu", "32"}},
      // 8 blocks of 256 threads on each multiprocessor, 10 waves of them.
      .base = {{"Grid_Size", 132.0 * 8 * 10 * 256},
               {"Workgroup_Size", 256},
               {"Arch_VGPR", 32},
               {kSm, 55},
               {kMemory, 55},
               {kDram, 55},
               {kOccupancy, 90},
               {kThreads, 32},
               {kLatency, 20},
               {kUseful, 32},
               {"gpu__time_duration.sum", 100000},
               {"gpc__cycles_elapsed.max", 170000},
               {"sm__inst_issued.avg.pct_of_peak_sustained_active", 60},
               {"sm__cycles_active.avg", 160000},
               {"sm__cycles_active.max", 165000},
               {"smsp__warps_launched.sum", 132.0 * 8 * 10 * 8},
               {"smsp__average_inst_executed_per_warp.ratio", 800},
               {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 1e6},
               {"l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed", 40},
               {"l1tex__t_sectors.sum", 3e6},
               {"l1tex__t_sectors_lookup_hit.sum", 1e6},
               {"l1tex__t_sectors_lookup_miss.sum", 2e6},
               {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 2e6},
               {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", 0.95e6},
               {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 5e5},
               {"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", 2.4e5},
               {"lts__t_sectors.sum", 3e6},
               {"lts__t_sectors_op_read.sum", 2e6},
               {"lts__t_sectors_op_write.sum", 0.95e6},
               {"lts__t_sectors_srcunit_tex.sum", 3e6}},
      .plants = {
          {"memory-bound", {{kDram, 92}}},
          {"compute-bound", {{kSm, 95}}},
          {"latency-bound", {{kSm, 5}, {kMemory, 6}, {kDram, 4}}},
          {"low-occupancy", {{"Arch_VGPR", 255}, {kOccupancy, 10}}},
          {"tail-effect", {{"Grid_Size", 132.0 * 8 * 256 * 1.1}, {"smsp__warps_launched.sum", 132.0 * 8 * 8 * 1.1}}},
          {"small-grid", {{"Grid_Size", 132.0 * 256}, {"smsp__warps_launched.sum", 132.0 * 8}}},
          {"uneven-blocks", {{"sm__cycles_active.avg", 90000}}},
          {"divergence", {{kThreads, 6}}},
          {"lds-bank-conflicts", {{"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 8e5}}},
          {"uncoalesced-loads", {{"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 7e4}, {kUseful, 4}}},
          {"uncoalesced-stores", {{"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", 3e4}, {kUseful, 4}}},
          {"register-spills",
           {{"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", 5e5},
            {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1.4e6},
            {"Scratch_Per_Workitem", 128}}},
          {"global-latency", {{stalled("long_scoreboard"), 12}}},
          {"barriers", {{stalled("barrier"), 8}}},
          {"memory-queues", {{stalled("lg_throttle"), 8}}},
          {"atomics",
           {{"lts__t_sectors_op_atom.sum", 9e5},
            {"lts__t_sectors_op_write.sum", 5e4},
            {"lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed", 75}}},
          {"host-memory", {{"lts__t_sectors_aperture_sysmem_op_read.sum", 1e6}}},
          {"instruction-cache", {{stalled("no_instruction"), 6}}},
      }};
  return bench;
}

const Bench& cpu() {
  // Two cores for 10 ms.
  static const Bench bench = {
      .vendor = "CPU",
      .architecture = "cpu",
      .machine = {{"gpu_arch", "cpu"}, {"gpu_model", "cpu"}, {"cu_per_gpu", "2"}},
      .duration = 1e7,
      .base = {{"Grid_Size", 65536},
               {"Workgroup_Size", 64},
               {"CPU_TASK_CLOCK", 1.9e7},
               {"CPU_WALL_TIME", 1e7},
               {"CPU_MINOR_FAULTS", 10}},
      .plants = {{"idle-cores", {{"CPU_TASK_CLOCK", 8e6}}}, {"first-touch", {{"CPU_MINOR_FAULTS", 5000}}}}};
  return bench;
}

// Rows between the table's head and the next empty line of docs/metrics.md.
std::vector<std::string> documented(const std::string& vendor) {
  const char* const source = std::getenv("TACHO_SOURCE");
  std::ifstream file(std::string(source != nullptr ? source : ".") + "/docs/metrics.md");
  EXPECT_TRUE(file.good()) << "TACHO_SOURCE names no source tree";
  std::vector<std::string> rows;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("| ") && line.find("| " + vendor + " |") != std::string::npos) rows.push_back(line);
  return rows;
}

TEST(Truth, RulesOfRealDevicesFindTheirFaultsAndNoOthers) {
  for (const Bench* bench : {&amd(), &nvidia(), &cpu()}) {
    std::vector<std::string> rows;
    for (const auto& [slug, row] : run_bench(*bench)) rows.push_back(row);
    std::string table;
    for (const std::string& row : rows) table += row + "\n";
    EXPECT_EQ(documented(bench->vendor), rows) << "docs/metrics.md must have these rows:\n" << table;
  }
}

}  // namespace
}  // namespace tacho::metric
