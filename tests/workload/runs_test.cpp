// profiling_config.yaml of tacho profile: written and read back, damaged, hostile; which runs go together; folders.
#include "workload/runs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "workload/writer.h"

namespace tacho::workload {
namespace {

RunEntry entry(int number, std::vector<std::string> command, std::vector<std::string> kernels = {}) {
  RunEntry run;
  run.number = number;
  run.command = std::move(command);
  run.kernels = std::move(kernels);
  run.files = {fmt::format("pmc_perf_{}.csv", number - 1)};
  return run;
}

TEST(Runs, AreReadAsTheyWereWritten) {
  RunEntry odd = entry(1, {"./a b", "--x=\"q\"", "back\\slash", "tab\there", "line\nbreak", "ümlaut", ""}, {"k, [1]"});
  odd.blocks = {"2", "lds"};
  odd.set = "launch_stats";
  odd.estimated = true;
  odd.exit_code = 139;
  const auto back = parse_runs(config_text({odd, entry(2, {"./b"})}), "f");
  ASSERT_TRUE(back.has_value()) << back.error().message;
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].command, odd.command);
  EXPECT_EQ((*back)[0].kernels, odd.kernels);
  EXPECT_EQ((*back)[0].blocks, odd.blocks);
  EXPECT_EQ((*back)[0].set, odd.set);
  EXPECT_TRUE((*back)[0].estimated);
  EXPECT_EQ((*back)[0].exit_code, 139);
  EXPECT_EQ((*back)[1].number, 2);
}

TEST(Runs, FilesOfOthersHaveNone) {
  const auto none = parse_runs("name: vcopy\nfilter_blocks:\n- '2'\nremaining: ./vcopy\n", "f");
  ASSERT_TRUE(none.has_value());
  EXPECT_TRUE(none->empty());
}

TEST(Runs, DamageIsNamedByLineAndColumn) {
  std::string text = config_text({entry(1, {"./a"})});
  text.replace(text.find("\"command\""), 9, "\"commend\"");
  const auto bad = parse_runs(text, "folder/profiling_config.yaml");
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().message.find("folder/profiling_config.yaml: line "), std::string::npos);
}

TEST(Runs, DepthAndForeignTagsAreNoTrouble) {
  EXPECT_FALSE(parse_runs("runs:\n  - " + std::string(100'000, '['), "f").has_value());
  const auto foreign = parse_runs("path: !!python/object/apply:pathlib.PosixPath [a]\nruns: null\n", "f");
  ASSERT_TRUE(foreign.has_value()) << foreign.error().message;
  EXPECT_TRUE(foreign->empty());
  EXPECT_TRUE(parse_runs("\t{ no yaml", "f")->empty());
  EXPECT_TRUE(parse_recorded_blocks("\t{ no yaml").empty());
  EXPECT_EQ(parse_recorded_blocks("filter_blocks:\n- !!str 2\n- 'lds'\n"), (std::vector<std::string>{"2", "lds"}));
}

TEST(Runs, HostileTextIsAnErrorAndNothingElse) {
  std::mt19937 random(3);
  const std::string good = config_text({entry(1, {"./a", "b"}), entry(2, {"c"}, {"k"})});
  for (int round = 0; round < 5000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bad.resize(random() % bad.size());
    const auto runs = parse_runs(bad, "f");
    if (runs) {
      EXPECT_LE(runs->size(), 2u) << bad;
      continue;
    }
    EXPECT_TRUE(runs.error().message.starts_with("f")) << runs.error().message;
    EXPECT_EQ(runs.error().message.find('\n'), std::string::npos) << runs.error().message;
  }
}

TEST(Runs, OfEqualCommandAndFiltersGoTogether) {
  const std::vector<RunEntry> runs = {entry(1, {"a"}), entry(2, {"b"}), entry(3, {"a"}), entry(4, {"a"}, {"k"})};
  EXPECT_EQ(*choose_runs(runs, 0, "f"), (std::vector<size_t>{3}));
  EXPECT_EQ(*choose_runs(runs, 1, "f"), (std::vector<size_t>{0, 2}));
  EXPECT_EQ(*choose_runs(runs, 2, "f"), (std::vector<size_t>{1}));
  EXPECT_FALSE(choose_runs(runs, 9, "f").has_value());
  std::vector<RunEntry> failed = runs;
  failed.push_back(entry(5, {"z"}));
  failed.back().files.clear();  // measured nothing
  EXPECT_EQ(*choose_runs(failed, 0, "f"), (std::vector<size_t>{3}));
}

TEST(Writer, AddsRunsAndReplacesNothingUnlessTold) {
  std::string folder = (std::filesystem::temp_directory_path() / "tacho-writer-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string place = folder + "/deep/er";
  {
    auto writer = FolderWriter::open(place, false);
    ASSERT_TRUE(writer.has_value()) << writer.error().message;
    EXPECT_EQ(writer->next_pass(), 0);
    ASSERT_TRUE(writer->write("pmc_perf_0.csv", "a\n").has_value());
    EXPECT_FALSE(writer->write("pmc_perf_0.csv", "b\n").has_value());
    ASSERT_TRUE(writer->add_run(entry(1, {"./a"})).has_value());
  }
  {
    auto writer = FolderWriter::open(place, false);
    ASSERT_TRUE(writer.has_value());
    EXPECT_EQ(writer->next_pass(), 1);
    EXPECT_EQ(writer->earlier().size(), 1u);
    ASSERT_TRUE(writer->add_run(entry(0, {"./a"})).has_value());
    EXPECT_EQ(read_runs(place)->back().number, 2);
  }
  std::ofstream(place + "/mine.txt") << "stays";
  std::ofstream(place + "/.tacho-spool-dead") << "of a run that was killed";
  std::ofstream(place + "/.tacho-12-run.tacho.partial-3") << "of the same";
  std::ofstream(place + "/.tacho-0123456789abcdef.partial") << "of a trace that is being written";
  const auto text = [&](const std::string& name) {
    std::ifstream file(place + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  {
    // The program does not start: everything is as it was.
    auto writer = FolderWriter::open(place, true);
    ASSERT_TRUE(writer.has_value());
    EXPECT_EQ(writer->next_pass(), 0);
    ASSERT_TRUE(writer->write("pmc_perf_0.csv", "c\n").has_value());
    ASSERT_TRUE(writer->write("sysinfo.csv", "d\n").has_value());
  }
  EXPECT_EQ(text("pmc_perf_0.csv"), "a\n");
  EXPECT_FALSE(std::filesystem::exists(place + "/sysinfo.csv"));
  EXPECT_EQ(read_runs(place)->size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(place + "/.tacho-spool-dead"));
  // Killed before the program started, after the old files were set aside: the next run finds them again.
  std::filesystem::create_directories(place + "/.tacho-old-abc123/perfmon");
  for (const char* name : {"pmc_perf_0.csv", "profiling_config.yaml"})
    std::filesystem::rename(place + "/" + name, place + "/.tacho-old-abc123/" + name);
  {
    auto writer = FolderWriter::open(place, false);
    ASSERT_TRUE(writer.has_value());
    EXPECT_EQ(writer->next_pass(), 1);
    EXPECT_EQ(writer->earlier().size(), 2u);
    writer->started();
  }
  EXPECT_EQ(text("pmc_perf_0.csv"), "a\n");
  EXPECT_FALSE(std::filesystem::exists(place + "/.tacho-spool-dead"));
  EXPECT_FALSE(std::filesystem::exists(place + "/.tacho-12-run.tacho.partial-3"));
  EXPECT_FALSE(std::filesystem::exists(place + "/.tacho-old-abc123"));
  EXPECT_TRUE(std::filesystem::remove(place + "/.tacho-0123456789abcdef.partial"));
  {
    auto fresh = FolderWriter::open(place, true);
    ASSERT_TRUE(fresh.has_value());
    EXPECT_EQ(fresh->next_pass(), 0);
    EXPECT_FALSE(std::filesystem::exists(place + "/pmc_perf_0.csv"));
    // One at a time: another would remove what this one is writing.
    for (const bool overwrite : {false, true}) {
      const auto second = FolderWriter::open(place, overwrite);
      ASSERT_FALSE(second.has_value());
      EXPECT_NE(second.error().message.find("another run is being written there"), std::string::npos)
          << second.error().message;
    }
    fresh->started();
  }
  for (const auto& left : std::filesystem::directory_iterator(place))
    EXPECT_TRUE(left.path().filename() == "perfmon" || left.path().filename() == "mine.txt") << left.path();
  EXPECT_TRUE(std::filesystem::exists(place + "/mine.txt"));
  std::ofstream(place + "/pmc_perf.csv") << "Dispatch_ID\n";
  EXPECT_FALSE(FolderWriter::open(place, false).has_value());  // another tool's profile
  std::filesystem::remove_all(folder);
}

TEST(Writer, NamesTheFilesOfPasses) {
  std::string folder = (std::filesystem::temp_directory_path() / "tacho-writer-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  for (const std::string suffix : {"", "_1", "_2"}) {
    const auto writer = FolderWriter::open(folder, false);
    ASSERT_TRUE(writer.has_value()) << writer.error().message;
    const int first = suffix.empty() ? 0 : 2 * (suffix.back() - '0');
    EXPECT_EQ(writer->stem("pmc_perf_1", false), fmt::format("pmc_perf_{}", first + 1));
    EXPECT_EQ(writer->stem("pmc_perf_1", true), fmt::format("results_{}", first + 1));
    EXPECT_EQ(writer->stem("SQ_LEVEL_WAVES", false), "SQ_LEVEL_WAVES" + suffix);
    EXPECT_EQ(writer->stem("SQ_LEVEL_WAVES", true), "results_SQ_LEVEL_WAVES" + suffix);
    // The names of a run do not change while it writes.
    for (const bool long_form : {false, true}) {
      const std::string name = writer->stem("SQ_LEVEL_WAVES", long_form);
      ASSERT_TRUE(writer->write(name + ".csv", "a\n").has_value());
      EXPECT_EQ(writer->stem("SQ_LEVEL_WAVES", long_form), name);
    }
    ASSERT_TRUE(writer->write(writer->stem("pmc_perf_1", false) + ".csv", "a\n").has_value());
    ASSERT_TRUE(writer->add_run(entry(0, {"./a"})).has_value());
  }
  FolderWriter::open(folder, true)->started();
  for (const auto& left : std::filesystem::directory_iterator(folder)) EXPECT_EQ(left.path().filename(), "perfmon");
  std::filesystem::remove_all(folder);
}

TEST(Csv, CellsAndNumbers) {
  EXPECT_EQ(csv_number(1048576), "1048576");
  EXPECT_EQ(csv_number(0.1), "0.1");
  EXPECT_EQ(csv_number(std::numeric_limits<double>::quiet_NaN()), "");
}

}  // namespace
}  // namespace tacho::workload
