// Catalog files of users: additions, changes, and the reports of mistakes in them.
#include "metric/catalog/yaml/yaml.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "metric/catalog/builtin/builtin.h"

namespace tacho::metric {
namespace {

/// A block with one table and one metric, in which a line can be replaced to make a mistake.
constexpr std::string_view kGood = R"(block: 90
slug: mine
title: My Block
aliases: [my]
description: Mine.
tables:
  - table: 1
    slug: my-table
    title: My Table
    columns: [name, avg, min, max, unit]
    metrics:
      - slug: my-metric
        name: My Metric
        unit: pct
        kind: ratio
        value: 100 * SQ_WAVES / $denom
        description: What it is.
        advice: What to do.
)";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kGood);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of_catalog(std::string_view yaml) {
  const auto catalog = parse_catalog(yaml, "f.yaml", "gfx942");
  return catalog.has_value() ? "no error" : catalog.error().message;
}

TEST(CatalogYaml, ReadsABlock) {
  const auto catalog = parse_catalog(kGood, "f.yaml", "gfx942");
  ASSERT_TRUE(catalog.has_value()) << catalog.error().message;
  const Metric* metric = catalog->metric("my-metric");
  ASSERT_NE(metric, nullptr);
  EXPECT_EQ(to_string(metric->id), "90.1.0");
  EXPECT_EQ(formula_text(metric->cells[1]), "AVG(100 * SQ_WAVES / $denom)");
  EXPECT_EQ(formula_text(metric->cells[3]), "MAX(100 * SQ_WAVES / $denom)");
  EXPECT_TRUE(metric->cells[0].formula.empty());
  EXPECT_EQ(resolve(*catalog, "my")->block->number, 90);
}

TEST(CatalogYaml, ErrorsNameFileLineAndColumn) {
  EXPECT_EQ(error_of_catalog(replaced("unit: pct", "unti: pct")).substr(0, 50),
            "f.yaml:14:9: a metric has no key \"unti\"; known are");
  EXPECT_EQ(error_of_catalog(replaced("kind: ratio", "kind: share")),
            "f.yaml:15:15: kind must be one of sum, rate, ratio, not \"share\"");
  EXPECT_EQ(error_of_catalog(replaced("slug: my-metric", "slug: My Metric")).substr(0, 14), "f.yaml:12:15: ");
  EXPECT_EQ(error_of_catalog(replaced("SQ_WAVES / $denom", "(SQ_WAVES / $denom")),
            "f.yaml:16:16: a \"(\" or \"[\" is not closed");
  EXPECT_EQ(error_of_catalog(replaced("SQ_WAVES / $denom", "SQ_WAVES) / $denom")),
            "f.yaml:16:16: a closing \")\" without its opening one");
  EXPECT_EQ(error_of_catalog(replaced("[name, avg, min, max, unit]", "[name, avg, mean]")),
            "f.yaml:10:26: there is no column \"mean\"");
  EXPECT_EQ(error_of_catalog(replaced("[name, avg, min, max, unit]", "[avg, name]")),
            "f.yaml:10:14: the first column must be \"name\" or \"channel\"");
  EXPECT_EQ(error_of_catalog(replaced("[name, avg, min, max, unit]", "[name, avg, avg]")),
            "f.yaml:10:26: the column \"avg\" stands here twice");
  EXPECT_EQ(error_of_catalog(replaced("block: 90", "block: x")),
            "f.yaml:1:8: block must be a number from 0 to 9999, not \"x\"");
  EXPECT_EQ(error_of_catalog(replaced("block: 90", "block: -1")),
            "f.yaml:1:8: block must be a number from 0 to 9999, not \"-1\"");
  EXPECT_EQ(error_of_catalog(replaced("        name: My Metric\n", "")),
            "f.yaml:12:9: metric \"my-metric\" needs a name");
  EXPECT_EQ(error_of_catalog(replaced("        advice: What to do.\n", "")),
            "f.yaml:12:9: metric \"my-metric\" needs \"advice\"");
  EXPECT_EQ(error_of_catalog(replaced("        value: 100 * SQ_WAVES / $denom\n", "")),
            "f.yaml:12:9: metric \"my-metric\" has no formula for the column \"avg\"");
  EXPECT_EQ(error_of_catalog(replaced("        unit: pct\n", "        unit: pct\n        unit: pct\n")),
            "f.yaml:15:9: a metric has the key \"unit\" twice");
  EXPECT_EQ(error_of_catalog(replaced("aliases: [my]", "aliases: [my-table]")),
            "f.yaml:8:11: \"my-table\" names block 90 and table 90.1");
  EXPECT_EQ(error_of_catalog(replaced("unit: pct", "only: gfx1")),
            "f.yaml:14:15: there is no architecture or family \"gfx1\"");
  EXPECT_EQ(error_of_catalog(replaced("unit: pct", "unit: [pct]")).substr(0, 14), "f.yaml:14:15: ");
  EXPECT_EQ(error_of_catalog("tables: []"), "f.yaml:1:9: \"tables\" needs a \"block\" with the number of its block");
  EXPECT_EQ(error_of_catalog("a: [1"), "f.yaml:1:1: end of sequence flow not found");
  EXPECT_EQ(error_of_catalog("just words"), "f.yaml:1:1: a catalog file must be a mapping of keys to values");
}

TEST(CatalogYaml, AnOverrideMustChangeSomething) {
  EXPECT_EQ(
      error_of_catalog(replaced("unit: pct", "unit: pct\n        arch: {gfx942: {value: 100 * SQ_WAVES / $denom}}")),
      "f.yaml:15:32: the value for gfx942 equals the default");
  EXPECT_EQ(error_of_catalog(replaced("unit: pct", "unit: pct\n        compat: {value: 100 * SQ_WAVES / $denom}")),
            "f.yaml:12:9: the compat entries of \"my-metric\" change nothing");
  EXPECT_EQ(error_of_catalog("architectures: {gfx942: {}}\ndefinitions: {a: {value: B, arch: {gfx942: B}}}"),
            "f.yaml:2:44: the override for gfx942 equals the default");
}

TEST(CatalogYaml, DefinitionsAreExpanded) {
  const auto value_of = [](std::string_view definitions, std::string_view value) -> std::string {
    const std::string yaml = fmt::format("{}definitions:\n{}", replaced("100 * SQ_WAVES / $denom", value), definitions);
    const auto catalog = parse_catalog(yaml, "f.yaml", "gfx942");
    return catalog.has_value() ? std::string(catalog->metric("my-metric")->value) : catalog.error().message;
  };
  EXPECT_EQ(value_of("  a: X + Y\n", "$a / $denom"), "(X + Y) / $denom");
  EXPECT_EQ(value_of("  a: X + Y\n", "$a"), "X + Y");
  EXPECT_EQ(value_of("  a: X\n  b: $a * $a\n", "$b - 1"), "(X * X) - 1");
  EXPECT_EQ(value_of("  a: X[0] + X[1]\n", "2 * $a"), "2 * (X[0] + X[1])");
  EXPECT_EQ(value_of("  a: \"X[*]\"\n", "2 * $a"), "2 * X[*]");
  EXPECT_EQ(value_of("  a: $b\n  b: $a\n", "$a"), "f.yaml:20:6: this definition refers to itself");
  EXPECT_EQ(value_of("  a: $a\n", "$a"), "f.yaml:20:6: this definition refers to itself");
  EXPECT_EQ(value_of("  a-b: X\n", "1"), "f.yaml:20:8: a definition's name must be letters, digits and _, not \"a-b\"");
  EXPECT_EQ(value_of("  a: {value: X, arch: {gfx942: Y}}\n", "$a"), "Y");
  // Doubling definitions cannot blow up.
  std::string doubling = "  a0: X + Y\n";
  for (int i = 1; i < 40; ++i) doubling += fmt::format("  a{}: $a{} + $a{}\n", i, i - 1, i - 1);
  EXPECT_NE(value_of(doubling, "$a39").find("longer than"), std::string::npos);
}

TEST(CatalogYaml, HostileInputEndsInASentence) {
  EXPECT_NE(error_of_catalog(std::string(100000, '[')), "no error");
  EXPECT_NE(error_of_catalog(std::string(100000, '{')), "no error");
  EXPECT_NE(error_of_catalog(std::string(5 << 20, ' ')), "no error");
  EXPECT_NE(error_of_catalog("&a [*a, *a]"), "no error");
  EXPECT_NE(error_of_catalog("block: *nothing"), "no error");
  EXPECT_NE(error_of_catalog("? [a, b]\n: c"), "no error");
  EXPECT_NE(error_of_catalog("block: !!binary x"), "no error");
  EXPECT_NE(error_of_catalog(std::string("block: 1\0\xff\xfe", 11)), "no error");
  EXPECT_EQ(error_of_catalog(""), "no error");
  EXPECT_EQ(error_of_catalog("---\n# nothing\n"), "no error");
  EXPECT_EQ(error_of_catalog("a: 1\n---\nb: 2\n"),
            "f.yaml:2:1: a catalog file is one document, and a second one begins here");
}

TEST(CatalogYaml, AddsToAndChangesTheBuiltInCatalog) {
  Catalog catalog = *load_catalog("gfx942");
  const size_t before = catalog.metric_count();
  ASSERT_TRUE(add_yaml(catalog, kGood, "f.yaml").has_value());
  EXPECT_EQ(catalog.metric_count(), before + 1);

  // A metric appended to a table, with a definition of the built-in catalog.
  const auto appended = add_yaml(catalog, R"(block: 11
tables:
  - table: 2
    metrics:
      - {slug: cu-utilization, name: CU Utilization, unit: pct, kind: ratio, value: 100 * SQ_BUSY_CU_CYCLES / $cu_cycles,
         description: Share of cycles with a wavefront., advice: Launch more.}
)",
                                 "g.yaml");
  ASSERT_TRUE(appended.has_value()) << appended.error().message;
  const Metric* added = catalog.metric("cu-utilization");
  ASSERT_NE(added, nullptr);
  EXPECT_EQ(to_string(added->id), "11.2.11");
  EXPECT_EQ(added->value, "100 * SQ_BUSY_CU_CYCLES / ($GRBM_GUI_ACTIVE_PER_XCD * $cu_per_gpu)");

  // A known slug changes that metric in the fields given; percent of peak follows.
  ASSERT_TRUE(add_yaml(catalog, "block: 2\ntables:\n  - {table: 1, metrics: [{slug: sol-ipc, peak: 4}]}", "h.yaml")
                  .has_value());
  const Metric& ipc = *catalog.metric("sol-ipc");
  EXPECT_EQ(ipc.name, "IPC");
  EXPECT_EQ(ipc.cells[3].formula, "4");
  EXPECT_EQ(formula_text(ipc.cells[4]), "100 * AVG(SQ_INSTS / SQ_BUSY_CU_CYCLES) / (4)");
  EXPECT_EQ(to_string(ipc.id), "2.1.15");

  // Mistakes leave everything as it was.
  const auto moved =
      add_yaml(catalog, "block: 2\ntables:\n  - {table: 1, metrics: [{slug: lds-latency, unit: x}]}", "i.yaml");
  ASSERT_FALSE(moved.has_value());
  EXPECT_EQ(moved.error().message,
            "i.yaml:3:33: the slug \"lds-latency\" belongs to metric 12.2.2; a metric cannot move to another table");
  const auto unknown =
      add_yaml(catalog, "block: 2\ntables:\n  - {table: 1, metrics: [{slug: sol-ipc, value: $nope}]}", "j.yaml");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message, "j.yaml:3:49: there is no definition or value \"$nope\"");
  EXPECT_EQ(formula_text(catalog.metric("sol-ipc")->cells[1]), "AVG(SQ_INSTS / SQ_BUSY_CU_CYCLES)");
}

TEST(CatalogYaml, FormulasOfUsersAreCheckedWhereTheyStand) {
  const FormulaCheck check = [](std::string_view formula) -> Status {
    if (formula.find("BAD") != std::string_view::npos) return fail("BAD is no counter");
    return {};
  };
  Catalog catalog = *load_catalog("gfx942");
  const auto added = add_yaml(catalog, replaced("SQ_WAVES", "BAD"), "f.yaml", check);
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().message, "f.yaml:16:16: BAD is no counter");
}

TEST(CatalogYaml, FoldersOfUsers) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / fmt::format("tacho-catalog-test-{}", ::getpid());
  fs::create_directories(folder);
  const auto load = [&] {
    const std::vector<std::string> folders = {folder.string()};
    return load_catalog("gfx942", folders);
  };
  EXPECT_NE(load().error().message.find("no catalog files"), std::string::npos);
  std::ofstream(folder / "a.yaml") << kGood;
  std::ofstream(folder / "notes.txt") << "not yaml: [";
  auto catalog = load();
  ASSERT_TRUE(catalog.has_value()) << catalog.error().message;
  EXPECT_NE(catalog->metric("my-metric"), nullptr);
  std::ofstream(folder / "b.yaml") << "block: 91\n";
  EXPECT_EQ(load().error().message, (folder / "b.yaml").string() + ":1:8: the new block 91 needs a slug and a title");
  fs::remove_all(folder);
  EXPECT_NE(load().error().message.find("not a folder"), std::string::npos);
}

}  // namespace
}  // namespace tacho::metric
