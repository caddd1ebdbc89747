// Architectures in catalog files: the built-in ones, those that users add, and mistakes.
#include "metric/catalog/architectures.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "metric/catalog/builtin/builtin.h"
#include "metric/expression/expression.h"

namespace tacho::metric {
namespace {

std::string mistake_in(std::string_view yaml, std::string_view vendor = "amd") {
  const CatalogFile file{"f.yaml", std::string(yaml)};
  const auto read = read_architectures(std::span(&file, 1), vendor, check_syntax);
  return read.has_value() ? "no error" : read.error().message;
}

TEST(Architectures, HaveTheFactsOfTheirFiles) {
  const Architecture mi300 = *built_in_architecture("gfx942");
  EXPECT_EQ(mi300.vendor, "amd");
  EXPECT_EQ(mi300.family, "MI300");
  EXPECT_EQ(mi300.number("caches.l1"), 32768);
  EXPECT_EQ(mi300.number("per_cycle.fp64"), 128);
  EXPECT_TRUE(std::isnan(mi300.number("per_cycle.mma_f16")));
  EXPECT_EQ(mi300.matrix.size(), 7U);
  const auto block = std::find_if(mi300.counters.begin(), mi300.counters.end(),
                                  [](const CounterBlock& each) { return each.prefix == "SQC"; });
  ASSERT_NE(block, mi300.counters.end());
  EXPECT_EQ(block->block, "SQ");
  EXPECT_EQ(block->slots, 8);
  EXPECT_EQ(built_in_architecture("sm_90")->text("chip"), "GH100");
  EXPECT_EQ(built_in_architecture("sm_75")->number("per_cycle.l1"), 64);
  EXPECT_FALSE(built_in_architecture("sm_75")->metrics);
  EXPECT_FALSE(built_in_architecture("gfx1100").has_value());
  EXPECT_TRUE(built_in_architecture("gfx908")->roofline.flops.empty());
}

TEST(Architectures, HaveFormulasThatParse) {
  for (const std::string_view vendor : vendors())
    for (const std::string_view name : architectures(vendor)) {
      const RooflineModel model = built_in_architecture(name)->roofline;
      std::vector<std::string_view> texts = {model.l1, model.l2, model.hbm, model.lds, model.compat_flops};
      for (const auto& [series, bytes] : model.compat_hbm) texts.push_back(bytes);
      for (const FlopTerms& kind : model.flops)
        for (const FlopTerm& term : kind.terms) texts.insert(texts.end(), term.formulas.begin(), term.formulas.end());
      for (const std::string_view text : texts)
        EXPECT_TRUE(text.empty() || check_syntax(text).has_value()) << name << ": " << text;
    }
}

TEST(Architectures, OfUsersAreLikeOneThatIsThere) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / fmt::format("tacho-architectures-{}", ::getpid());
  fs::create_directories(folder);
  std::ofstream(folder / "a.yaml") << "architectures:\n"
                                      "  gfx955: {like: gfx950, family: MI360, names: [mi360x], caches: {l2: 16 MiB}}\n"
                                      "  gfx956: {like: gfx955}\n"
                                      "  gfx942: {counters: {SQ: 10}}\n";
  const std::vector<std::string> folders = {folder.string()};
  const auto named = architecture_named("MI360X_A1", folders);
  ASSERT_TRUE(named.has_value()) << named.error().message;
  ASSERT_TRUE(named->has_value());
  EXPECT_EQ((*named)->name, "gfx955");
  EXPECT_EQ((*named)->number("caches.l2"), 16 << 20);
  EXPECT_EQ((*named)->number("caches.l1"), 32 << 10);
  EXPECT_EQ((*named)->matrix.size(), 6U);
  for (const std::string_view name : {"gfx955", "gfx956"}) {
    const auto catalog = load_catalog(name, folders);
    ASSERT_TRUE(catalog.has_value()) << catalog.error().message;
    EXPECT_EQ(catalog->architecture, name);
    EXPECT_EQ(catalog->metric_count(), load_catalog("gfx950")->metric_count());
  }
  const auto changed = load_catalog("gfx942", folders);
  ASSERT_TRUE(changed.has_value()) << changed.error().message;
  for (const CounterBlock& block : changed->facts.counters) {
    if (block.block == "SQ") {
      EXPECT_EQ(block.slots, 10) << block.prefix;
    }
  }
  // Entries for gfx950 apply to it too, unless the file has one for it alone.
  std::ofstream(folder / "b.yaml") << "definitions:\n"
                                      "  mine: {value: '1', arch: {gfx950: '2', gfx956: '3'}}\n";
  const auto mine = [&](std::string_view name) {
    const auto catalog = load_catalog(name, folders);
    for (const Definition& each : catalog->definitions)
      if (each.name == "mine") return std::string(each.formula);
    return std::string();
  };
  EXPECT_EQ(mine("gfx942"), "1");
  EXPECT_EQ(mine("gfx950"), "2");
  EXPECT_EQ(mine("gfx955"), "2");
  EXPECT_EQ(mine("gfx956"), "3");
  std::ofstream(folder / "a.yaml") << "architectures:\n  gfx955: {family: MI360}\n";
  EXPECT_EQ(architecture_named("gfx955", folders).error().message,
            (folder / "a.yaml").string() +
                ":2:11: the new architecture \"gfx955\" needs \"like\" with the name of one that tacho has");
  fs::remove_all(folder);
}

TEST(Architectures, MistakesAreNamedWhereTheyStand) {
  EXPECT_EQ(mistake_in("architectures:\n  gfx1: {like: gfx0}\n"),
            "f.yaml:2:16: there is no architecture \"gfx0\" that \"gfx1\" could be like");
  EXPECT_EQ(mistake_in("architectures:\n  gfx1: {caches: {l1: many}}\n"),
            "f.yaml:2:23: l1 must be a number of bytes such as 16 KiB, not \"many\"");
  EXPECT_EQ(mistake_in("architectures:\n  gfx1: {caches: {l9: 4 KiB}}\n"),
            "f.yaml:2:19: caches has no key \"l9\"; known are l1, l2, last");
  EXPECT_EQ(mistake_in("architectures:\n  gfx1: {counters: {SQC: SQ}}\n"),
            "f.yaml:2:26: \"SQ\" is neither a number of slots nor a block that stands before SQC");
  EXPECT_EQ(mistake_in("architectures:\n  gfx1: {features: [magic]}\n"),
            "f.yaml:2:20: there is no feature \"magic\"; known are wgmma, mma_f64_k16, tcgen05");
  EXPECT_NE(mistake_in("architectures:\n  gfx1: {roofline: {l1: 1 +}}\n").find("f.yaml:2:25: "), std::string::npos);
  EXPECT_EQ(mistake_in("architectures:\n  gfx1: {matrix: [{element: f5, builtin: b, "
                       "operand: o, shape: 1x1x1, per_cycle: 1}]}\n"),
            "f.yaml:2:29: there is no element \"f5\"; known are f16, bf16, tf32, e4m3, i8, f64, f32, e4m3fnuz");
  EXPECT_EQ(mistake_in("architectures:\n  gfx1: 5\n"),
            "f.yaml:2:9: the architecture \"gfx1\" must be a mapping of keys to values");
}

}  // namespace
}  // namespace tacho::metric
