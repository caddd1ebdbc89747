// Whole analyses of recorded folders through every renderer.
#include "metric/analysis/analysis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "../../workload/folders.h"
#include "metric/analysis/compare.h"
#include "metric/analysis/roofline_points.h"
#include "metric/render/page/html.h"
#include "metric/render/page/json.h"
#include "metric/render/run_names.h"
#include "metric/render/text/roofline_plot.h"
#include "metric/render/text/text.h"

namespace tacho::metric {
namespace {

std::vector<std::string> recordings(const std::string& data) {
  std::vector<std::string> folders;
  for (const auto& workload : std::filesystem::directory_iterator(data + "/workloads"))
    for (const auto& arch : std::filesystem::directory_iterator(workload.path()))
      folders.push_back(arch.path().string());
  std::sort(folders.begin(), folders.end());
  return folders;
}

TEST(Analysis, EveryRecordingRendersInEveryForm) {
  TACHO_NEED_DATA(data);
  for (const std::string& folder : recordings(data))
    for (const bool compat : {false, true})
      for (const char* unit : {"per_kernel", "per_second"}) {
        AnalysisOptions options;
        options.compat = compat;
        options.normalisation = unit;
        options.sum_ratios = !compat;
        std::vector<Analysis> runs;
        auto analysis = Analysis::run(folder, options);
        ASSERT_TRUE(analysis) << folder << ": " << analysis.error().message;
        runs.push_back(std::move(*analysis));
        TextOptions text;
        EXPECT_NE(to_text(runs, text).find("\nKernels\n"), std::string::npos) << folder;
        text.full = true;
        for (const bool boxed : {false, true}) {
          text.boxed = boxed;
          text.description = boxed;
          EXPECT_NE(to_text(runs, text).find("2.1 Speed-of-Light"), std::string::npos) << folder;
        }
        text.per_kernel = true;
        EXPECT_FALSE(to_text(runs, text).empty());
        EXPECT_FALSE(saved_tables(runs.front(), text).empty());
        EXPECT_FALSE(tidy_table(runs).rows.empty());
        EXPECT_TRUE(to_html(runs));
        EXPECT_FALSE(to_json(runs, {true, true}).empty());
        for (const ResultTable& table : runs.front().all().tables)
          for (const ResultRow& row : table.rows) {
            ASSERT_EQ(row.cells.size(), table.table->columns.size());
            for (const report::Cell& cell : row.cells)
              if (const auto* value = std::get_if<double>(&cell)) {
                EXPECT_FALSE(std::isnan(*value)) << folder << " " << row.id;
              }
          }
      }
}

TEST(Analysis, EveryMetricCanBeExplained) {
  TACHO_NEED_DATA(data);
  const auto analysis = Analysis::run(data + "/workloads/synth_a/MI350", {});
  ASSERT_TRUE(analysis) << analysis.error().message;
  for (const ResultTable& table : analysis->all().tables)
    for (const ResultRow& row : table.rows) {
      if (row.channel > 0) continue;
      const auto text = analysis->explain(row.metric->slug);
      ASSERT_TRUE(text) << text.error().message;
      EXPECT_NE(text->find(row.metric->slug), std::string::npos);
    }
}

TEST(Analysis, WhatAMeanDividesFitsTheTerminal) {
  TACHO_NEED_DATA(data);
  const auto analysis = Analysis::run(data + "/workloads/synth_a/MI350", {});
  ASSERT_TRUE(analysis) << analysis.error().message;
  size_t sentences = 0;
  for (const ResultTable& table : analysis->all().tables)
    for (const ResultRow& row : table.rows) {
      if (row.channel > 0) continue;
      const auto text = analysis->explain(row.metric->slug, 80);
      ASSERT_TRUE(text) << text.error().message;
      std::istringstream lines(*text);
      bool within = false;
      for (std::string line; std::getline(lines, line);) {
        const bool first = line.starts_with("    ") && line.find("sum of ") != std::string::npos;
        within = first || (within && line.starts_with("      "));
        sentences += first ? 1U : 0U;
        if (within) {
          EXPECT_LE(line.size(), 80U) << line;
        }
      }
    }
  EXPECT_GT(sentences, 100U);
}

TEST(Analysis, ComparesAllArchitecturesWithOneAnother) {
  TACHO_NEED_DATA(data);
  std::vector<Analysis> runs;
  for (const char* arch : {"MI200", "MI100", "MI300X_A1", "MI350"}) {
    auto run = Analysis::run(data + "/workloads/synth_a/" + arch, {});
    ASSERT_TRUE(run) << run.error().message;
    runs.push_back(std::move(*run));
  }
  const ComparedRuns comparison = compare(runs);
  EXPECT_GT(comparison.tables.size(), 30U);
  for (const ComparedTable& table : comparison.tables)
    for (const ComparedRow& row : table.rows)
      for (const ComparedValue& value : row.columns) {
        ASSERT_EQ(value.values.size(), 4U);
        for (size_t r = 1; r < 4; ++r)
          if (value.values[0] && value.values[r] && *value.values[0] == *value.values[r]) {
            EXPECT_EQ(value.percent[r], 0);
          }
      }
  EXPECT_GT(largest_change(runs, false).percent, 0);
  TextOptions text;
  const std::string screen = to_text(runs, text);
  for (const char* name :
       {" MI100 ", " MI200 ", " MI300X_A1 ", " MI350 ", " us ", "Biggest changes", "Findings, MI350 against MI200"})
    EXPECT_NE(screen.find(name), std::string::npos) << name;
  TextOptions chosen;
  chosen.chosen_unit = true;
  EXPECT_NE(to_text(runs, chosen).find("MI300X_A1 (ns)"), std::string::npos);
  text.full = true;
  const std::string tables = to_text(runs, text);
  for (const char* heading : {"1.1 System Info", "2.1 ", "3.1 Memory Chart", "4.1 Roofline", "Biggest changes"})
    EXPECT_NE(tables.find(heading), std::string::npos) << heading;
  text.boxed = true;
  EXPECT_FALSE(to_text(runs, text).empty());
  EXPECT_NE(to_json(runs, {}).find("\"runs\""), std::string::npos);
}

TEST(RunNames, AreWhatTellsThePathsApart) {
  const auto names = [](std::vector<std::string> paths) { return run_names(paths); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({"w/before/MI200", "w/after/MI200"}), (Names{"before", "after"}));
  EXPECT_EQ(names({"w/a/MI200", "w/a/MI100"}), (Names{"MI200", "MI100"}));
  EXPECT_EQ(names({"x/a/1", "x/b/1", "y/a/1"}), (Names{"x/a", "x/b", "y/a"}));
  EXPECT_EQ(names({"w", "./w"}), (Names{"run 0", "run 1"}));
  EXPECT_EQ(cut_middle("abcdefghij", 7), "abc…hij");
  EXPECT_EQ(cut_middle("äöüäöüäöüä", 5), "äö…üä");
  EXPECT_EQ(cut_middle("short", 10), "short");
}

TEST(Roofline, RoofsAndPlot) {
  workload::RooflineCeilings ceilings;
  ceilings.values = {{"HBMBw", 1000}, {"L2Bw", 5000}, {"FP32Flops", 20000}, {"MFMAF32Flops", 40000}};
  const std::vector<Roof> lines = roofs(ceilings, "FP32");
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].name, "hbm");
  EXPECT_EQ(lines[0].x1, 40) << "the ridge under the higher peak";
  EXPECT_EQ(lines[2].name, "valu");
  EXPECT_EQ(lines[2].x0, 4) << "where the fastest memory reaches it";
  EXPECT_TRUE(roofs(ceilings, "FP4").empty());
  EXPECT_EQ(roofline_data_types(ceilings), (std::vector<std::string_view>{"FP32"}));
  IntensityPoint point;
  point.hbm = 4;
  point.performance = 2000;
  const size_t number = 0;
  const std::string plot = roofline_plot(lines, {&point, 1}, {&number, 1}, {}, 80, 20);
  EXPECT_NE(plot.find('0'), std::string::npos);
  EXPECT_NE(plot.find("hbm"), std::string::npos);
  EXPECT_NE(plot.find("mfma"), std::string::npos);
  EXPECT_TRUE(roofline_plot({}, {}, {}, {}, 80, 20).empty());
  // Hardware whose memory and units have other names.
  RooflineModel model;
  model.names = {{"hbm", "DRAM"}, {"mfma", "tensor cores"}};
  const std::string named = roofline_plot(lines, {&point, 1}, {&number, 1}, model, 80, 20);
  EXPECT_EQ(named.find("hbm"), std::string::npos);
  EXPECT_NE(named.find("DRAM"), std::string::npos);
  EXPECT_NE(named.find("tensor cores"), std::string::npos);
  EXPECT_EQ(shown_roof(model, "mfma FP32"), "tensor cores FP32");
  EXPECT_EQ(roof_name(model, "hbm"), "DRAM");
  EXPECT_EQ(roof_name(model, "l1"), "vL1D");
}

}  // namespace
}  // namespace tacho::metric
