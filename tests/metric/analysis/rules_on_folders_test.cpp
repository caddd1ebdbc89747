// Every rule of the catalog on whole profile folders: one where it must fire, one where it must stay silent.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "../../workload/folders.h"
#include "base/csv.h"
#include "metric/analysis/analysis.h"
#include "metric/catalog/builtin/builtin.h"
#include "metric/catalog/rules.h"
#include "report/text.h"

namespace tacho::metric {
namespace {

// A change of one column: value = factor * the column `times` ("" = 1).
struct Change {
  std::string file, column;
  double factor;
  std::string times;
};

std::string changed_csv(const std::string& path, const std::vector<Change>& changes) {
  auto reader = CsvReader::open(path);
  std::vector<std::string_view> fields;
  std::vector<std::string> header;
  std::string out;
  while (reader->next(fields).value_or(false)) {
    std::vector<std::string> row(fields.begin(), fields.end());
    if (header.empty()) {
      header = row;
    } else {
      for (const Change& change : changes) {
        const auto at = [&](const std::string& name) {
          const auto found = std::find(header.begin(), header.end(), name);
          EXPECT_NE(found, header.end()) << name << " in " << path;
          return static_cast<size_t>(found - header.begin());
        };
        const double times = change.times.empty() ? 1 : parse_number(row[at(change.times)]).value;
        row[at(change.column)] = fmt::format("{:.0f}", change.factor * times);
      }
    }
    for (size_t i = 0; i < row.size(); ++i) out += (i > 0 ? "," : "") + csv_field(row[i]);
    out += '\n';
  }
  return out;
}

void copy_changed(const std::string& from, const tacho::testing::Folder& to,
                  const std::vector<Change>& changes) {
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".csv") continue;
    std::vector<Change> here;
    for (const Change& change : changes)
      if (change.file == name) here.push_back(change);
    to.write(name, changed_csv(entry.path().string(), here));
  }
}

std::set<std::string> fired(const std::string& folder) {
  AnalysisOptions options;
  options.most_findings = 1000;
  const auto analysis = Analysis::run(folder, options);
  std::set<std::string> slugs;
  EXPECT_TRUE(analysis) << (analysis ? "" : analysis.error().message);
  if (analysis)
    for (const Finding& finding : analysis->findings()) slugs.insert(finding.slug);
  return slugs;
}

// vcopy on MI200 with what each rule looks for: GRBM_GUI_ACTIVE cycles on 104 compute units.
const std::map<std::string, std::vector<Change>>& made_up_runs() {
  const std::string main = "pmc_perf.csv", cycles = "GRBM_GUI_ACTIVE";
  static const std::map<std::string, std::vector<Change>> runs = {
      {"vl1d-bandwidth", {{main, "TCP_TOTAL_CACHE_ACCESSES_sum", 5, "TCP_TOTAL_CACHE_ACCESSES_sum"}}},
      {"l2-bandwidth", {{main, "TCC_REQ_sum", 4, "TCC_REQ_sum"}, {main, "TCC_HIT_sum", 20, "TCC_HIT_sum"}}},
      {"mfma-saturated", {{main, "SQ_VALU_MFMA_BUSY_CYCLES", 0.8 * 104 * 4, cycles}}},
      {"half-precision-on-valu", {{main, "SQ_INSTS_VALU_FMA_F16", 0.4, "SQ_INSTS_VALU"}}},
      {"unfused-multiply-add",
       {{main, "SQ_INSTS_VALU_MUL_F32", 0.3, "SQ_INSTS_VALU"},
        {main, "SQ_INSTS_VALU_ADD_F32", 0.3, "SQ_INSTS_VALU"},
        {main, "SQ_ACTIVE_INST_VALU", 0.4 * 104, cycles}}},
      {"occupancy-vgprs",
       {{main, "SPI_RA_VGPR_SIMD_FULL_CSN", 0.6 * 104, cycles},
        {"SQ_LEVEL_WAVES.csv", "SQ_ACCUM_PREV_HIRES", 500, cycles}}},
      {"occupancy-lds",
       {{main, "SPI_RA_LDS_CU_FULL_CSN", 0.15 * 104, cycles},
        {"SQ_LEVEL_WAVES.csv", "SQ_ACCUM_PREV_HIRES", 500, cycles}}},
      {"occupancy-workgroups", {{main, "SPI_RA_TGLIM_CU_FULL_CSN", 0.1 * 104, cycles}}},
      {"occupancy-barriers", {{main, "SPI_RA_BAR_CU_FULL_CSN", 0.1 * 104, cycles}}},
      {"partial-wavefront", {{main, "Workgroup_Size", 32, ""}}},
      {"lds-bank-conflicts",
       {{main, "SQ_LDS_IDX_ACTIVE", 0.5 * 104, cycles}, {main, "SQ_LDS_BANK_CONFLICT", 0.4 * 104, cycles}}},
  };
  return runs;
}

TEST(RulesOnFolders, EveryRuleFiresSomewhereAndIsSilentSomewhere) {
  TACHO_NEED_DATA(data);
  std::map<std::string, std::set<std::string>> runs;  // folder -> rules that fired
  for (const auto& workload : std::filesystem::directory_iterator(data + "/workloads"))
    for (const auto& arch : std::filesystem::directory_iterator(workload.path()))
      runs[workload.path().filename().string() + "/" + arch.path().filename().string()] =
          fired(arch.path().string());
  const std::set<std::string>& base = runs.at("vcopy/MI200");
  for (const auto& [rule, changes] : made_up_runs()) {
    tacho::testing::Folder folder;
    copy_changed(data + "/workloads/vcopy/MI200", folder, changes);
    const std::set<std::string> rules = fired(folder.path());
    EXPECT_TRUE(rules.contains(rule)) << rule << " must fire on the run made for it";
    EXPECT_FALSE(base.contains(rule)) << rule << " must be silent on the run it was made from";
    runs["made for " + rule] = rules;
  }
  const Catalog catalog = *load_catalog("gfx90a");
  const RuleBook book = *load_rules(catalog);
  EXPECT_GE(book.rules.size(), 25U);
  for (const Rule& rule : book.rules) {
    std::string on, off;
    for (const auto& [folder, rules] : runs) (rules.contains(std::string(rule.slug)) ? on : off) = folder;
    EXPECT_FALSE(on.empty()) << rule.slug << " fires on no folder";
    EXPECT_FALSE(off.empty()) << rule.slug << " is silent on no folder";
  }
}

TEST(RulesOnFolders, AtMostFiveAKernelAndNoneWithoutEvidence) {
  TACHO_NEED_DATA(data);
  const auto analysis = Analysis::run(data + "/workloads/synth_a/MI200", {});
  ASSERT_TRUE(analysis) << analysis.error().message;
  std::map<uint32_t, int> count;
  double last = std::numeric_limits<double>::infinity();
  for (const Finding& finding : analysis->findings()) {
    EXPECT_LE(++count[finding.kernel], 5);
    EXPECT_FALSE(finding.evidence.empty()) << finding.slug;
    EXPECT_LE(finding.share * finding.severity, last) << "ranked by share of time and severity";
    last = finding.share * finding.severity;
    for (const Evidence& evidence : finding.evidence)
      EXPECT_TRUE(std::isfinite(evidence.value)) << finding.slug;
  }
  EXPECT_FALSE(count.empty());
}

}  // namespace
}  // namespace tacho::metric
