// Every rule for NVIDIA GPUs and the virtual GPU on whole profile folders: a run with nothing to find, on
// which it is silent, and that run with what it looks for.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "../../workload/folders.h"
#include "base/format.h"
#include "metric/analysis/analysis.h"
#include "metric/catalog/builtin/builtin.h"
#include "metric/catalog/rules.h"

namespace tacho::metric {
namespace {

using Row = std::map<std::string, double>;

void write_run(const tacho::testing::Folder& folder, const std::map<std::string, std::string>& machine,
               const Row& row) {
  std::string names, values;
  for (const auto& [name, value] : machine) {
    names += (names.empty() ? "" : ",") + name;
    values += (values.empty() ? "" : ",") + value;
  }
  folder.write("sysinfo.csv", names + "\n" + values + "\n");
  std::string header = "Dispatch_ID,Kernel_Name,GPU_ID", line = "0,kernel,0";
  for (const auto& [name, value] : row) {
    header += "," + name;
    line += fmt::format(",{}", value);
  }
  folder.write("pmc_perf.csv", header + ",Start_Timestamp,End_Timestamp\n" + line + ",1000,2000\n");
}

void check(const std::string& architecture, const std::map<std::string, std::string>& machine,
           const Row& base, const std::map<std::string, Row>& made) {
  const auto fired = [&](const Row& changes) {
    Row row = base;
    for (const auto& [name, value] : changes) {
      EXPECT_TRUE(base.contains(name)) << name;
      row[name] = value;
    }
    tacho::testing::Folder folder;
    write_run(folder, machine, row);
    AnalysisOptions options;
    options.most_findings = 1000;
    const auto analysis = Analysis::run(folder.path(), options);
    std::set<std::string> slugs;
    EXPECT_TRUE(analysis) << (analysis ? "" : analysis.error().message);
    if (analysis)
      for (const Finding& finding : analysis->findings()) slugs.insert(finding.slug);
    return slugs;
  };
  EXPECT_EQ(fired({}), std::set<std::string>()) << "there is nothing to find in the run they are made from";
  const Catalog catalog = *load_catalog(architecture);
  const RuleBook book = *load_rules(catalog);
  for (const Rule& rule : book.rules) {
    const auto run = made.find(std::string(rule.slug));
    ASSERT_NE(run, made.end()) << rule.slug << " has no run made for it";
    EXPECT_TRUE(fired(run->second).contains(std::string(rule.slug))) << rule.slug;
  }
  EXPECT_EQ(book.rules.size(), made.size());
}

TEST(DeviceRules, Nvidia) {
  const std::map<std::string, std::string> machine = {{"gpu_arch", "sm_90"},
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
                                                      {"lds_banks_per_cu", "32"}};
  const std::string sm = "sm__throughput.avg.pct_of_peak_sustained_elapsed",
                    memory = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                    dram = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                    occupancy = "sm__warps_active.avg.pct_of_peak_sustained_active",
                    threads = "smsp__average_thread_inst_executed_pred_on_per_inst_executed.ratio",
                    conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
                    wavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
  // 8 blocks of 256 threads on each multiprocessor, 10 waves of them.
  const Row base = {{"Grid_Size", 132.0 * 8 * 10 * 256},
                    {"Workgroup_Size", 256},
                    {"LDS_Per_Workgroup", 0},
                    {"Arch_VGPR", 32},
                    {sm, 55},
                    {memory, 55},
                    {dram, 55},
                    {occupancy, 90},
                    {threads, 32},
                    {conflicts, 0},
                    {wavefronts, 1000},
                    {"gpu__time_duration.sum", 1000}};
  check("sm_90", machine, base,
        {{"memory-bound", {{dram, 92}}},
         {"compute-bound", {{sm, 95}}},
         {"latency-bound", {{sm, 5}, {memory, 6}, {dram, 4}}},
         {"low-occupancy", {{"Arch_VGPR", 255}, {occupancy, 10}}},
         {"tail-effect", {{"Grid_Size", 132.0 * 8 * 256 * 1.1}}},
         {"small-grid", {{"Grid_Size", 132.0 * 256}}},
         {"divergence", {{threads, 6}}},
         {"lds-bank-conflicts", {{conflicts, 800}}}});
}

TEST(DeviceRules, Virtual) {
  const std::map<std::string, std::string> machine = {
      {"gpu_arch", "virtual"},    {"gpu_model", "virtual"}, {"wave_size", "32"},
      {"lds_banks_per_cu", "32"}, {"lds_bank_bytes", "4"},  {"sector_bytes", "32"},
      {"line_bytes", "128"},      {"version", "tacho 1.0"}, {"num_xcd", "1"}};
  Row base = {{"Grid_Size", 25600}, {"Workgroup_Size", 256}, {"LDS_Per_Workgroup", 0}};
#define TACHO_VIRTUAL_COUNTER(name, text) base[#name] = 0;
#include "vendor/virtual/counters.def"
#undef TACHO_VIRTUAL_COUNTER
  for (const auto& [name, value] : Row{{"V_WORK_GROUPS", 100},
                                       {"V_WORK_GROUPS_RUN", 100},
                                       {"V_WORK_ITEMS", 25600},
                                       {"V_WAVES", 800},
                                       {"V_INST", 8000},
                                       {"V_THREAD_INST", 256000},
                                       {"V_INST_FP_ADD", 4000},
                                       {"V_INST_INT32", 1000},
                                       {"V_BRANCHES", 800},
                                       {"V_INST_GLOBAL_LOAD", 800},
                                       {"V_GLOBAL_LOAD_SECTORS", 3200},
                                       {"V_GLOBAL_LOAD_USED_BYTES", 102400},
                                       {"V_INST_GLOBAL_STORE", 800},
                                       {"V_GLOBAL_STORE_SECTORS", 3200},
                                       {"V_GLOBAL_STORE_USED_BYTES", 102400},
                                       {"V_INST_LOCAL_LOAD", 800},
                                       {"V_INST_GLOBAL_ATOMIC", 100},
                                       {"V_INST_CONSTANT_LOAD", 100},
                                       {"V_CONSTANT_LOAD_WORDS", 100}}) {
    ASSERT_TRUE(base.contains(name)) << name;
    base[name] = value;
  }
  check("virtual", machine, base,
        {{"divergence", {{"V_THREAD_INST", 100000}, {"V_BRANCHES_DIVERGENT", 400}}},
         {"partial-wavefront", {{"V_WORK_ITEMS", 12800}}},
         {"uncoalesced-loads", {{"V_GLOBAL_LOAD_SECTORS", 25600}}},
         {"uncoalesced-stores", {{"V_GLOBAL_STORE_SECTORS", 25600}}},
         {"lds-bank-conflicts", {{"V_LOCAL_LOAD_CONFLICTS", 4000}}},
         {"private-arrays", {{"V_INST_PRIVATE_LOAD", 3000}}},
         {"wide-integer-arithmetic", {{"V_INST_INT64", 9000}}},
         {"atomic-contention", {{"V_GLOBAL_ATOMIC_CONFLICTS", 2000}}},
         {"scattered-constants", {{"V_CONSTANT_LOAD_WORDS", 1600}}}});
}

}  // namespace
}  // namespace tacho::metric
