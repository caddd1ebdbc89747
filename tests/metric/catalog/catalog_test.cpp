// The built-in catalog: complete, the same rows as upstream 3.3.0 has, every metric written once and explained.
#include "metric/catalog/catalog.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "metric/catalog/blob.h"
#include "metric/catalog/builtin/builtin.h"
#include "metric/catalog/builtin/bytes.h"
#include "metric/catalog/yaml/yaml.h"

namespace tacho::metric {
namespace {

namespace fs = std::filesystem;

fs::path source_folder() {
  const char* source = std::getenv("TACHO_SOURCE");
  return source != nullptr ? fs::path(source)
                           : fs::path(__FILE__).parent_path().parent_path().parent_path().parent_path();
}

fs::path data_folder() {
  const char* data = std::getenv("TACHO_DATA");
  return data != nullptr ? fs::path(data) : source_folder().parent_path() / "shared" / "data";
}

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

/// Skips the test, or fails where the data is required.
#define NEED_DATA(path)                                                                              \
  do {                                                                                               \
    if (!fs::exists(path)) {                                                                         \
      const char* required = std::getenv("TACHO_REQUIRE_DATA");                                      \
      if (required != nullptr && std::string_view(required) == "1") FAIL() << path << " is missing"; \
      GTEST_SKIP() << "no recorded data at " << path << " (set TACHO_DATA)";                         \
    }                                                                                                \
  } while (false)

template <typename Visit>
void each_metric(const Catalog& catalog, Visit visit) {
  for (const Block& block : catalog.blocks)
    for (const MetricTable& table : block.tables)
      for (const Metric& metric : table.metrics) visit(block, table, metric);
}

TEST(Catalog, HasAtLeastTheMetricsOfTheReference) {
  const std::map<std::string_view, size_t> reference = {{"gfx908", 322}, {"gfx90a", 368}, {"gfx940", 369},
                                                        {"gfx941", 369}, {"gfx942", 370}, {"gfx950", 440}};
  ASSERT_EQ(architectures().size(), reference.size());
  for (const std::string_view architecture : architectures()) {
    const auto catalog = load_catalog(architecture);
    ASSERT_TRUE(catalog.has_value()) << catalog.error().message;
    ASSERT_TRUE(reference.contains(architecture));
    EXPECT_GE(catalog->metric_count(), reference.at(architecture)) << architecture;
    std::set<int> blocks;
    size_t tables = 0;
    for (const Block& block : catalog->blocks) {
      blocks.insert(block.number);
      tables += block.tables.size();
    }
    EXPECT_EQ(blocks, (std::set<int>{0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17, 18, 21}));
    EXPECT_EQ(tables, 55u) << architecture;
  }
}

TEST(Catalog, EveryMetricIsNamedExplainedAndConsistent) {
  std::map<std::string, std::tuple<std::string, std::string, int, int>> everywhere;
  for (const std::string_view architecture : architectures()) {
    const Catalog catalog = *load_catalog(architecture);
    std::set<std::string_view> slugs;
    each_metric(catalog, [&](const Block& block, const MetricTable& table, const Metric& metric) {
      const std::string where = std::string(architecture) + " " + std::string(metric.slug);
      EXPECT_TRUE(slugs.insert(metric.slug).second) << where;
      EXPECT_FALSE(metric.name.empty()) << where;
      EXPECT_EQ(metric.cells.size(), table.columns.size()) << where;
      EXPECT_TRUE(metric.compat_cells.empty() || metric.compat_cells.size() == metric.cells.size()) << where;
      for (const std::string_view sentence : {metric.description, metric.advice}) {
        EXPECT_GE(sentence.size(), 15u) << where;
        EXPECT_TRUE(sentence.ends_with('.')) << where << ": " << sentence;
        EXPECT_EQ(sentence.find("  "), std::string_view::npos) << where;
      }
      // A slug's meaning does not depend on the architecture; only its number and formulas may.
      const auto [known, fresh] = everywhere.try_emplace(std::string(metric.slug), std::string(metric.name),
                                                         std::string(metric.unit), block.number, table.number);
      if (!fresh) {
        EXPECT_EQ(known->second,
                  std::tuple(std::string(metric.name), std::string(metric.unit), block.number, table.number))
            << where;
      }
      EXPECT_EQ(catalog.metric(metric.id), &metric) << where;
      EXPECT_EQ(catalog.metric(metric.slug), &metric) << where;
    });
  }
}

TEST(Catalog, UnitsSuitKinds) {
  for (const std::string_view architecture : architectures()) {
    const Catalog catalog = *load_catalog(architecture);
    each_metric(catalog, [&](const Block&, const MetricTable&, const Metric& metric) {
      const bool normalised = metric.unit.find("$norm") != std::string_view::npos;
      const bool per_time = metric.unit.ends_with("/s");
      EXPECT_EQ(normalised, metric.kind == Kind::kSum) << metric.slug;
      EXPECT_EQ(per_time, metric.kind == Kind::kRate) << metric.slug;
    });
  }
}

/// Each value that the catalog shows has a formula, except where it says so.
TEST(Catalog, CellsHaveFormulas) {
  size_t unavailable = 0;
  for (const std::string_view architecture : architectures()) {
    const Catalog catalog = *load_catalog(architecture);
    each_metric(catalog, [&](const Block&, const MetricTable& table, const Metric& metric) {
      bool any = false;
      for (size_t i = 0; i < table.columns.size(); ++i) {
        const MetricColumn& column = table.columns[i];
        const Cell& cell = metric.cells[i];
        if (column.role == ColumnRole::kName || column.role == ColumnRole::kUnit) {
          EXPECT_TRUE(cell.formula.empty()) << metric.slug;
          continue;
        }
        if (column.role == ColumnRole::kText) {
          EXPECT_FALSE(cell.formula.empty()) << metric.slug;
          continue;
        }
        if (column.key != "peak" && !cell.formula.empty()) any = true;
        EXPECT_EQ(cell.formula.find('@'), std::string_view::npos) << metric.slug;
      }
      if (!any) ++unavailable;
    });
  }
  // gfx908 lists 11 metrics of 2.1, 3.1 and 15.4 that it has no counters for; gfx94x two latencies; 18.9 before MI350.
  EXPECT_GT(unavailable, 20u);
  EXPECT_LT(unavailable, 40u);
}

// Written once

/// The catalog's files as YAML, to check their text and not their meaning.
std::vector<std::pair<std::string, YAML::Node>> catalog_files() {
  std::vector<std::pair<std::string, YAML::Node>> files;
  for (const auto& entry : fs::directory_iterator(source_folder() / "catalog" / "amd"))
    if (entry.path().extension() == ".yaml")
      files.emplace_back(entry.path().filename().string(), YAML::LoadFile(entry.path().string()));
  return files;
}

TEST(Catalog, FormulasAreWrittenOnce) {
  std::map<std::string, std::vector<std::string>> written;
  size_t overrides = 0;
  size_t metrics = 0;
  for (const auto& [file, root] : catalog_files()) {
    if (!root["tables"]) continue;
    for (const auto& table : root["tables"]) {
      if (!table["metrics"]) continue;
      for (const auto& metric : table["metrics"]) {
        ++metrics;
        const auto slug = metric["slug"].as<std::string>();
        if (metric["value"]) written[metric["value"].as<std::string>()].push_back(slug);
        if (metric["arch"])
          for (const auto& entry : metric["arch"]) {
            ++overrides;
            if (entry.second["value"]) {
              EXPECT_NE(entry.second["value"].as<std::string>(), metric["value"].as<std::string>("")) << slug;
            }
          }
      }
    }
  }
  EXPECT_GE(metrics, 440u);
  // Overrides are the exception.
  EXPECT_LE(overrides, metrics / 12);
  for (const auto& [formula, slugs] : written) {
    // A long formula that several metrics need has a name in common.yaml; two tables may show the same short one.
    EXPECT_LE(slugs.size(), 4u) << formula;
    if (formula.size() > 110) {
      EXPECT_EQ(slugs.size(), 1u) << slugs.front() << " and " << slugs.back() << ": " << formula;
    }
  }
}

// AMD's names are those of rocprof-compute. Ours name a formula once, or lengthen the name: "Global Load Requests".
TEST(Catalog, AFormulaHasOneName) {
  size_t shared = 0;
  for (const char* const vendor : {"nvidia", "virtual", "cpu"}) {
    std::map<std::string, std::string> names;
    for (const auto& entry : fs::directory_iterator(source_folder() / "catalog" / vendor)) {
      const YAML::Node root =
          entry.path().extension() == ".yaml" ? YAML::LoadFile(entry.path().string()) : YAML::Node();
      if (!root["tables"]) continue;
      for (const auto& table : root["tables"])
        for (const auto& metric : table["metrics"] ? table["metrics"] : YAML::Node(YAML::NodeType::Sequence)) {
          if (!metric["value"]) continue;
          const auto name = metric["name"].as<std::string>();
          const auto [known, fresh] = names.try_emplace(metric["value"].as<std::string>(), name);
          shared += fresh ? 0 : 1;
          EXPECT_TRUE(known->second.find(name) != std::string::npos || name.find(known->second) != std::string::npos)
              << vendor << ": " << known->second << ", " << name;
        }
    }
  }
  EXPECT_GE(shared, 7U);
}

TEST(Catalog, SentencesAreNotCopied) {
  std::map<std::string, int> sentences;
  for (const auto& [file, root] : catalog_files()) {
    if (!root["tables"]) continue;
    for (const auto& table : root["tables"])
      if (table["metrics"])
        for (const auto& metric : table["metrics"]) {
          ++sentences[metric["description"].as<std::string>()];
          ++sentences[metric["advice"].as<std::string>()];
        }
  }
  for (const auto& [sentence, count] : sentences) EXPECT_LE(count, 3) << sentence;
}

// Against upstream's output

class Golden : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Golden, RowsAndColumnsAreThoseOfTheCatalog) {
  const auto [name, architecture] = GetParam();
  const fs::path path = data_folder() / "golden" / (std::string(name) + ".json");
  NEED_DATA(path);
  const YAML::Node golden = YAML::Load(read(path));  // JSON is YAML
  const Catalog catalog = *load_catalog(architecture);
  size_t rows = 0;
  for (const auto& golden_table : golden["tables"]) {
    const auto id = parse_metric_id(golden_table["id"].as<std::string>());
    ASSERT_TRUE(id.has_value());
    const MetricTable* table = catalog.table(id->block, id->table);
    ASSERT_NE(table, nullptr) << golden_table["id"];
    EXPECT_EQ(catalog.block(id->block)->title, golden_table["panel"].as<std::string>());
    // The users' documents call table 2.1 "Speed-of-Light", 3.3.0 repeats the block's title.
    if (id->block > 2) {
      EXPECT_EQ(table->title, golden_table["title"].as<std::string>());
    }
    if (golden_table["type"].as<std::string>() != "metric_table") {
      EXPECT_TRUE(table->metrics.empty());
      continue;
    }
    std::vector<std::string> columns;
    for (const MetricColumn& column : table->columns) columns.emplace_back(column.title);
    columns.emplace_back("coll_level");
    EXPECT_EQ(golden_table["columns"].as<std::vector<std::string>>(), columns) << golden_table["id"];

    const auto index = golden_table["index"].as<std::vector<std::string>>();
    if (!table->repeat.empty()) {
      EXPECT_EQ(table->metrics.size(), 1u);
      EXPECT_GE(index.size(), 32u);
      continue;
    }
    ASSERT_EQ(index.size(), table->metrics.size()) << golden_table["id"];
    for (size_t i = 0; i < index.size(); ++i, ++rows) {
      const Metric& metric = table->metrics[i];
      EXPECT_EQ(to_string(metric.id), index[i]);
      EXPECT_EQ(metric.compat_name.empty() ? metric.name : metric.compat_name,
                golden_table["rows"][i][0].as<std::string>())
          << index[i];
    }
  }
  EXPECT_GE(rows, 310u);
}

INSTANTIATE_TEST_SUITE_P(Recordings, Golden,
                         ::testing::Values(std::pair("vcopy__MI100", "gfx908"), std::pair("synth_a__MI100", "gfx908"),
                                           std::pair("vcopy__MI200", "gfx90a"), std::pair("synth_a__MI200", "gfx90a"),
                                           std::pair("no_roof__MI300A_A1", "gfx942"),
                                           std::pair("no_roof__MI300X_A1", "gfx942"),
                                           std::pair("synth_a__MI350", "gfx950"), std::pair("vcopy__MI350", "gfx950")),
                         [](const auto& info) { return std::string(info.param.first); });

// Names

TEST(Architectures, NameWhatOldSysinfoFilesLeaveOut) {
  const std::vector<std::pair<std::string_view, std::string_view>> one_die = {{"num_xcd", "1"}, {"pipes_per_gpu", "4"}};
  for (const std::string_view name : {"gfx908", "gfx90a"})
    EXPECT_EQ(load_catalog(name)->facts.missing_sysinfo, one_die) << name;
  EXPECT_TRUE(load_catalog("gfx942")->facts.missing_sysinfo.empty()) << "its files have always told";
}

TEST(MetricId, IsReadAndWritten) {
  for (const char* text : {"2", "2.1", "2.1.3", "18.10.127"}) {
    const auto id = parse_metric_id(text);
    ASSERT_TRUE(id.has_value()) << text;
    EXPECT_EQ(to_string(*id), text);
  }
  for (const char* text : {"", ".", "2.", "2.1.", "2.1.3.4", "a", "2.x", "-1", "2..1", " 2", "99999999999", "2.1.3 "})
    EXPECT_FALSE(parse_metric_id(text).has_value()) << text;
}

std::string resolved(const Catalog& catalog, std::string_view text, IdScheme scheme = IdScheme::kV33) {
  const auto selection = resolve(catalog, text, scheme);
  if (!selection.has_value()) return "error: " + selection.error().message;
  if (selection->metric != nullptr) return std::string(selection->metric->slug);
  if (selection->table != nullptr) return "table " + std::string(selection->table->slug);
  return "block " + std::string(selection->block->slug);
}

TEST(Resolve, NumbersSlugsAliasesAndNames) {
  const Catalog catalog = *load_catalog("gfx90a");
  EXPECT_EQ(resolved(catalog, "12"), "block local-data-share");
  EXPECT_EQ(resolved(catalog, "lds"), "block local-data-share");
  EXPECT_EQ(resolved(catalog, "LDS"), "block local-data-share");
  EXPECT_EQ(resolved(catalog, "l2"), "block l2-cache");
  EXPECT_EQ(resolved(catalog, "Local Data Share (LDS)"), "block local-data-share");
  EXPECT_EQ(resolved(catalog, "11.2"), "table pipeline-statistics");
  EXPECT_EQ(resolved(catalog, "pipeline-statistics"), "table pipeline-statistics");
  EXPECT_EQ(resolved(catalog, "11.2.3"), "valu-utilization");
  EXPECT_EQ(resolved(catalog, "valu-utilization"), "valu-utilization");
  EXPECT_EQ(resolved(catalog, "VALU-Utilization"), "valu-utilization");
  EXPECT_EQ(resolved(catalog, "cpc stall rate"), "cpc-stall");
  EXPECT_EQ(resolved(catalog, "18.2.31"), "l2-channel-hit-rate");
  EXPECT_EQ(resolved(catalog, "2.1.2"), "sol-mfma-flops-bf16");
  EXPECT_EQ(resolved(*load_catalog("gfx942"), "2.1.2"), "sol-mfma-flops-f8");
}

TEST(Resolve, SaysWhatIsWrongAndWhatIsNear) {
  const Catalog catalog = *load_catalog("gfx90a");
  EXPECT_EQ(resolved(catalog, "19"), "error: there is no block 19; `tacho metrics --arch gfx90a` lists all");
  EXPECT_EQ(resolved(catalog, "11.9"), "error: block 11 has no table 11.9");
  EXPECT_EQ(resolved(catalog, "11.2.11"), "error: there is no metric 11.2.11 on gfx90a: table 11.2 ends at 11.2.10");
  EXPECT_EQ(resolved(catalog, "16.6.0"), "error: table 16.6 has no metrics on gfx90a");
  EXPECT_NE(resolved(catalog, "valu-utilisation").find("near it: valu-utilization"), std::string::npos);
  EXPECT_NE(resolved(catalog, "VALU Utilization").find("2 metrics"), std::string::npos);
  EXPECT_NE(resolved(catalog, "qqqqqqqqqqqq").find("lists all"), std::string::npos);
  EXPECT_NE(resolved(catalog, "").find("empty"), std::string::npos);
}

TEST(Resolve, NumbersOfTheUsersDocuments) {
  const Catalog mi300 = *load_catalog("gfx942");
  EXPECT_EQ(resolved(mi300, "11.2.3", IdScheme::kSeedAnalyze), "salu-utilization");
  EXPECT_EQ(resolved(mi300, "11.2.7", IdScheme::kSeedProfile), "branch-utilization");
  EXPECT_EQ(resolved(mi300, "2.1.2", IdScheme::kSeedAnalyze), "sol-mfma-flops-bf16");
  EXPECT_EQ(resolved(mi300, "2.1.2", IdScheme::kSeedProfile), "sol-mfma-flops-f8");
  EXPECT_EQ(resolved(mi300, "11.1.6", IdScheme::kSeedAnalyze), "mfma-iops-i8");
  // Documents of analyze and of profile print one number for two metrics.
  const std::string both =
      "2.1.2 is MFMA FLOPs (F8) where profile lists it and MFMA FLOPs (BF16) where analyze prints it";
  for (const IdScheme scheme : {IdScheme::kSeedAnalyze, IdScheme::kSeedProfile, IdScheme::kV33})
    EXPECT_EQ(documents_meaning(mi300, "2.1.2", *resolve(mi300, "2.1.2", scheme)), both);
  EXPECT_EQ(documents_meaning(mi300, "2.1.3", *resolve(mi300, "2.1.3", IdScheme::kSeedAnalyze)), "");
  // A number that the documents do not print has its meaning of 3.3.0.
  EXPECT_EQ(resolved(mi300, "11.2.5", IdScheme::kSeedAnalyze), resolved(mi300, "11.2.5"));
  EXPECT_NE(resolved(*load_catalog("gfx90a"), "2.1.2", IdScheme::kSeedProfile).find("gfx90a does not have"),
            std::string::npos);

  const auto differs = resolve(mi300, "11.2.3");
  ASSERT_TRUE(differs.has_value());
  ASSERT_NE(differs->differs, nullptr);
  EXPECT_EQ(differs->differs->slug, "salu-utilization");
  EXPECT_EQ(resolve(mi300, "7.1.0")->differs, nullptr);
  EXPECT_EQ(resolve(mi300, "11.2")->differs, nullptr);
}

TEST(Resolve, ArchitecturesByTheirEverydayNames) {
  const auto named = [](std::string_view text) {
    const auto found = architecture_named(text).value();
    return found ? std::string(found->name) : std::string();
  };
  EXPECT_EQ(named("gfx942"), "gfx942");
  EXPECT_EQ(named("MI300X"), "gfx942");
  EXPECT_EQ(named("MI300X_A1"), "gfx942");
  EXPECT_EQ(named("gfx90a:sramecc+:xnack-"), "gfx90a");
  EXPECT_EQ(named("mi350"), "gfx950");
  EXPECT_EQ(named("gfx1100"), "");
  EXPECT_EQ(named(""), "");
  EXPECT_NE(load_catalog("gfx1100").error().message.find("gfx908, gfx90a"), std::string::npos);
}

TEST(Catalog, SetsAreThoseOfTheReference) {
  const auto ids = [](std::string_view architecture, std::string_view name) {
    const Catalog catalog = *load_catalog(architecture);
    std::string out;
    for (const MetricSet& set : catalog.sets)
      if (set.name == name)
        for (const std::string_view slug : set.metrics) out += to_string(catalog.metric(slug)->id) + " ";
    return out;
  };
  EXPECT_EQ(ids("gfx908", "compute_thruput_util"), "11.2.2 11.2.3 ");
  EXPECT_EQ(ids("gfx90a", "compute_thruput_util"), "11.2.3 11.2.4 11.2.5 11.2.6 ");
  EXPECT_EQ(ids("gfx942", "compute_thruput_util"), "11.2.2 11.2.3 11.2.4 11.2.5 ");
  EXPECT_EQ(ids("gfx950", "compute_thruput_util"), "11.2.2 11.2.3 11.2.5 11.2.6 ");
  EXPECT_EQ(ids("gfx950", "compute_thruput_flops"), "2.1.2 2.1.3 2.1.4 2.1.5 2.1.6 2.1.8 ");
  EXPECT_EQ(ids("gfx90a", "compute_thruput_flops"), "2.1.2 2.1.3 2.1.4 2.1.5 2.1.6 ");
  EXPECT_EQ(ids("gfx942", "mem_thruput"), "2.1.17 2.1.18 16.1.2 17.1.0 ");
  EXPECT_EQ(ids("gfx908", "launch_stats"), "7.1.0 7.1.1 7.1.2 7.1.5 7.1.6 7.1.7 7.1.8 7.1.9 ");
}

// Formulas

TEST(Catalog, FormulasAreExpandedAndRenamed) {
  const Catalog mi200 = *load_catalog("gfx90a");
  const Metric& reads = *mi200.metric("chart-fabric-l2-reads");
  EXPECT_EQ(reads.cells[1].formula, "ROUND(AVG(TCC_EA_RDREQ_sum / $denom), 0)");
  EXPECT_EQ(load_catalog("gfx942")->metric("chart-fabric-l2-reads")->cells[1].formula,
            "ROUND(AVG(TCC_EA0_RDREQ_sum / $denom), 0)");
  const Metric& utilization = *mi200.metric("sol-valu-utilization");
  EXPECT_EQ(formula_text(utilization.cells[4]),
            "AVG(100 * SQ_ACTIVE_INST_VALU / ($GRBM_GUI_ACTIVE_PER_XCD * $cu_per_gpu))");
  const Metric& ipc = *mi200.metric("sol-ipc");
  EXPECT_EQ(formula_text(ipc.cells[4]), "100 * AVG(SQ_INSTS / SQ_BUSY_CU_CYCLES) / (5)");
  EXPECT_TRUE(mi200.metric("sol-fabric-read-latency")->cells[3].formula.empty());
  EXPECT_EQ(formula_text({Reduction::kQ1, "A"}), "QUANTILE(A, 0.25)");
  EXPECT_EQ(formula_text({Reduction::kQ3, "A"}), "QUANTILE(A, 0.75)");
  EXPECT_EQ(formula_text({Reduction::kNone, "A"}), "A");
}

TEST(Catalog, KnowsWhat330ComputesDifferently) {
  const auto compat = [](std::string_view architecture, std::string_view slug, size_t column) {
    const Catalog catalog = *load_catalog(architecture);
    const Metric* metric = catalog.metric(slug);
    return metric->compat_cells.empty() ? std::string("-") : formula_text(metric->compat_cells[column]);
  };
  EXPECT_NE(compat("gfx942", "l2-channels-hit-rate", 1).find("TCC_HIT[0..15]"), std::string::npos);
  EXPECT_NE(compat("gfx90a", "l2-channels-hit-rate", 1).find("TCC_MISS[0..28] + TCC_MISS[28]"), std::string::npos);
  EXPECT_EQ(compat("gfx90a", "ta-spill-atomics", 3), "MIN(TA_BUFFER_ATOMIC_WAVEFRONTS_sum / $denom)");
  EXPECT_EQ(compat("gfx942", "ta-spill-atomics", 3), "-");
  EXPECT_EQ(compat("gfx90a", "fabric-write-bandwidth", 1), "");
  EXPECT_EQ(load_catalog("gfx90a")->metric("valu-flops")->compat_unit, "GFLOP");
  EXPECT_EQ(load_catalog("gfx950")->metric("l2-bypass-requests")->compat_name, "Bypasss Req");
}

TEST(Catalog, UnitsAreNormalised) {
  EXPECT_EQ(normalised_unit("Instr $norm", "per_wave"), "Instr per wave");
  EXPECT_EQ(normalised_unit("GB/s", "per_wave"), "GB/s");
  EXPECT_EQ(normalised_unit("", "per_kernel"), "");
}

// The compiled form

TEST(Blob, DecodesToWhatTheFilesSay) {
  const auto files = read_catalog_folder((source_folder() / "catalog" / "amd").string());
  ASSERT_TRUE(files.has_value()) << files.error().message;
  for (const std::string_view architecture : architectures()) {
    Catalog parsed;
    parsed.architecture = architecture;
    parsed.facts = *built_in_architecture(architecture);
    const auto applied = apply_catalog_files(parsed, *files, {});
    ASSERT_TRUE(applied.has_value()) << applied.error().message;
    const Catalog built_in = *load_catalog(architecture);
    ASSERT_EQ(parsed.metric_count(), built_in.metric_count());
    each_metric(parsed, [&](const Block&, const MetricTable& table, const Metric& metric) {
      const Metric* other = built_in.metric(metric.id);
      ASSERT_NE(other, nullptr);
      EXPECT_EQ(metric.slug, other->slug);
      EXPECT_EQ(metric.cells, other->cells) << metric.slug;
      EXPECT_EQ(metric.compat_cells, other->compat_cells) << metric.slug;
      EXPECT_EQ(metric.advice, other->advice);
      EXPECT_EQ(table.style, built_in.table_of(*other).style);
    });
  }
}

TEST(Blob, RefusesDamagedBytes) {
  const std::string blob(reinterpret_cast<const char*>(kEmbeddedCatalog), kEmbeddedCatalogSize);
  const auto decode = [](std::string_view bytes, std::string_view architecture) -> Result<Catalog> {
    TACHO_ASSIGN(const std::vector<Architecture> known, decode_architectures(bytes));
    return decode_catalog(bytes, known, architecture);
  };
  ASSERT_TRUE(decode(blob, "gfx942").has_value());
  EXPECT_FALSE(decode("", "gfx942").has_value());
  EXPECT_FALSE(decode(blob.substr(0, blob.size() / 2), "gfx942").has_value());
  // Any changed byte gives an error or another catalog, never a crash.
  std::string changed = blob;
  for (size_t at = 8; at < changed.size(); at += changed.size() / 300) {
    const char before = changed[at];
    changed[at] = static_cast<char>(~before);
    (void)decode(changed, "gfx950");
    (void)decode_rules(changed);
    changed[at] = before;
  }
}

}  // namespace
}  // namespace tacho::metric
