// Profile folders in every layout, and the faults of damaged ones.
#include "workload/workload.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>

#include "folders.h"
#include "workload/writer.h"

namespace tacho::workload {
namespace {

using tacho::testing::Folder;
using tacho::testing::kSysInfo;

Result<Workload> read(const Folder& folder, const ReadOptions& options = {}) {
  TACHO_ASSIGN(const std::string path, find_workload(folder.path()));
  TACHO_ASSIGN(SysInfo info, read_sysinfo(path));
  return read_workload(path, std::move(info), options);
}

std::vector<double> column(const Workload& run, std::string_view name, std::string_view pass = "pmc_perf") {
  const Pass* found = run.pass(pass);
  if (found == nullptr) return {};
  const auto values = found->counters.column(name);
  return {values.begin(), values.end()};
}

std::string sentence(const Result<Workload>& result) {
  return result ? "no error" : result.error().message;
}

void expect_warning(const Workload& run, std::string_view part) {
  for (const std::string& warning : run.warnings)
    if (warning.find(part) != std::string::npos) return;
  ADD_FAILURE() << "no warning about '" << part << "'; there are " << run.warnings.size()
                << (run.warnings.empty() ? "" : ": " + run.warnings.front());
}

constexpr const char* kWide =
    "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,SQ_WAVES,GRBM_GUI_ACTIVE,Start_Timestamp,End_Timestamp\n"
    ""
    "0,\"a<int, 2>(float*)\",2,1024,256,0,16,100,13386742234691895,13386742234691995\n"
    "1,b.kd,2,2048,256,0,32,200,13386742234692000,13386742234692400\n"
    "2,\"a<int, 2>(float*)\",2,1024,256,0,17,101,13386742234693000,13386742234693103\n";

TEST(Layout, Wide) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv", kWide);
  folder.write("timestamps.csv", "not,looked,at\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_TRUE(run->warnings.empty()) << run->warnings.front();
  EXPECT_EQ(run->kernels, (std::vector<std::string>{"a<int, 2>(float*)", "b.kd"}));
  ASSERT_EQ(run->dispatches.size(), 3U);
  EXPECT_EQ(run->dispatches[1].id, 1);
  EXPECT_EQ(run->dispatches[1].gpu, 2);
  EXPECT_EQ(column(*run, "SQ_WAVES"), (std::vector<double>{16, 32, 17}));
  const auto start = column(*run, "Start_Timestamp"), end = column(*run, "End_Timestamp");
  EXPECT_EQ(end[0] - start[0], 100) << "exact although a double cannot hold these times";
  EXPECT_EQ(end[2] - start[2], 103);
}

TEST(Layout, OldHeadersOfRocprofAndOmniperf) {
  Folder folder;
  folder.write(
      "sysinfo.csv",
      "workload_name,host_name,gpu_soc,numSE,numCU,numSIMD,waveSize,maxWavesPerCU,sclk,mclk,L2Banks,LDSBanks,name,numSQC,hbmBW,ip_blocks\n"
      ""
      "old,h,gfx90a,8,104,4,64,32,1700,1600,32,32,MI200,56,1638.4,SQ\n");
  folder.write(
      "pmc_perf.csv",
      "Index,KernelName,gpu-id,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,SQ_WAVES,BeginNs,EndNs\n0,k,0,64,64,0,0,8,0,16,1,5,9\n"
      "");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(column(*run, "Grid_Size"), (std::vector<double>{64}));
  EXPECT_EQ(column(*run, "Arch_VGPR"), (std::vector<double>{8}));
  EXPECT_EQ(column(*run, "End_Timestamp")[0] - column(*run, "Start_Timestamp")[0], 4);
  EXPECT_EQ(run->sysinfo.number("cu_per_gpu"), 104);
  EXPECT_EQ(run->sysinfo.number("max_sclk"), 1700);
  EXPECT_EQ(run->sysinfo.number("total_l2_chan"), 32);
  EXPECT_EQ(run->sysinfo.number("num_hbm_channels"), 32) << "from the bandwidth and the clock";
  EXPECT_EQ(run->sysinfo.get("gpu_arch"), "gfx90a");
}

TEST(Layout, NewNameOfTheMemoryChannels) {
  Folder folder;
  folder.write("sysinfo.csv", "gpu_arch,num_memory_channels\ngfx942,128\n");
  EXPECT_EQ(read_sysinfo(folder.path())->number("num_hbm_channels"), 128);
}

TEST(Layout, OnlyWantedColumnsAreKept) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv",
               "Dispatch_ID,Kernel_Name,A,TCC_HIT[0],TCC_HIT[1],B,Start_Timestamp,End_Timestamp\n0,k,1,2,3,4,0,1\n");
  ReadOptions options;
  options.wanted = WantedColumns({"B", "TCC_HIT["});
  const auto run = read(folder, options);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_TRUE(column(*run, "A").empty());
  EXPECT_EQ(column(*run, "B"), (std::vector<double>{4}));
  EXPECT_EQ(column(*run, "TCC_HIT[1]"), (std::vector<double>{3}));
}

TEST(Layout, LevelPassesAreMatchedByKernelWhenTheOrderDiffers) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv", kWide);
  folder.write("SQ_LEVEL_WAVES.csv",
               "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,SQ_ACCUM_PREV_HIRES,Start_Timestamp,End_Timestamp\n"
               "0,b [clone .kd],2,2048,7,0,1\n1,\"a<int, 2>(float*)\",2,1024,5,0,1\n2,\"a<int, "
               "2>(float*)\",2,1024,6,0,1\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(column(*run, "SQ_ACCUM_PREV_HIRES", "SQ_LEVEL_WAVES"), (std::vector<double>{5, 7, 6}));
  ReadOptions compat;
  compat.compat = true;
  const auto upstream = read(folder, compat);
  ASSERT_TRUE(upstream) << sentence(upstream);
  EXPECT_EQ(column(*upstream, "SQ_ACCUM_PREV_HIRES", "SQ_LEVEL_WAVES"), (std::vector<double>{7, 5, 6}))
      << "3.3 goes by row number";
}

TEST(Layout, ALevelPassThatLacksADispatch) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv", kWide);
  folder.write("SQ_LEVEL_WAVES.csv",
               "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,SQ_ACCUM_PREV_HIRES,Start_Timestamp,End_Timestamp\n"
               "0,\"a<int, 2>(float*)\",2,1024,5,0,1\n1,\"a<int, 2>(float*)\",2,1024,6,0,1\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  const auto values = column(*run, "SQ_ACCUM_PREV_HIRES", "SQ_LEVEL_WAVES");
  EXPECT_EQ(values[0], 5);
  EXPECT_TRUE(std::isnan(values[1]));
  EXPECT_EQ(values[2], 6);
  expect_warning(*run, "1 of the 3 dispatches");
}

TEST(Layout, PassesInFilesOfTheirOwnAreJoinedByKernelGridAndOrder) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf_0.csv",
               "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,A,Start_Timestamp,End_Timestamp\n0,k,0,64,1,1000,"
               "1100\n1,k,0,64,2,2000,2100\n2,m,0,64,3,3000,3300\n");
  folder.write("pmc_perf_10.csv",
               "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,C,A,Start_Timestamp,End_Timestamp\n0,m,0,64,30,9,"
               "500,700\n1,k.kd,0,64,10,9,600,900\n2,k.kd,0,64,20,9,1000,1300\n");
  folder.write("pmc_perf_2.csv",
               "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,B,Start_Timestamp,End_Timestamp\n0,k,0,64,4,0,"
               "200\n1,k,0,64,5,0,200\n2,m,0,64,6,0,100\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(column(*run, "A"), (std::vector<double>{1, 2, 3})) << "the first pass counts";
  EXPECT_EQ(column(*run, "B"), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(column(*run, "C"), (std::vector<double>{10, 20, 30}));
  const auto start = column(*run, "Start_Timestamp"), end = column(*run, "End_Timestamp");
  EXPECT_DOUBLE_EQ(end[0] - start[0], (100 + 200 + 300) / 3.0) << "mean of the passes";
  EXPECT_DOUBLE_EQ(end[2] - start[2], (300 + 100 + 200) / 3.0);
}

TEST(Layout, ContradictoryPassesAreNamed) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf_0.csv",
               "Dispatch_ID,Kernel_Name,Grid_Size,Workgroup_Size,A\n0,k,64,64,1\n1,k,64,64,2\n2,k,64,64,3\n");
  folder.write("pmc_perf_1.csv", "Dispatch_ID,Kernel_Name,Grid_Size,Workgroup_Size,B\n0,k,64,64,4\n1,k,64,32,5\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(column(*run, "A"), (std::vector<double>{1, 2}));
  expect_warning(*run, "1 of 3 dispatches is not in every pass");
  expect_warning(*run, "Workgroup_Size of dispatch 1 is 32, but 64");

  Folder strangers;
  strangers.write("sysinfo.csv", kSysInfo);
  strangers.write("pmc_perf_0.csv", "Dispatch_ID,Kernel_Name,A\n0,k,1\n");
  strangers.write("pmc_perf_1.csv", "Dispatch_ID,Kernel_Name,B\n0,other,4\n");
  EXPECT_NE(sentence(read(strangers)).find("no dispatch in common"), std::string::npos);
}

constexpr const char* kLong =
    "GPU_ID,Dispatch_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,"
    "SGPR,Kernel_Name,"
    "Start_Timestamp,End_Timestamp,Kernel_ID,Counter_Name,Counter_Value\n"
    "7,2,64,64,0,0,4,4,16,k,13386742234691895,13386742234691995,12,A,1\n"
    "7,2,64,64,0,0,4,4,16,k,13386742234691895,13386742234691995,12,B,2\n"
    "7,2,64,64,0,0,4,4,16,k,200,500,12,C,3\n"
    "9,5,128,64,0,0,4,4,16,\"m, n\",0,50,12,A,10\n"
    "9,5,128,64,0,0,4,4,16,\"m, n\",0,70,12,SQ_LEVEL_WAVES_ACCUM,40\n";

TEST(Layout, LongForm) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv", kLong);
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_TRUE(run->long_form);
  ASSERT_EQ(run->dispatches.size(), 2U);
  EXPECT_EQ(run->dispatches[0].id, 0) << "numbered anew";
  EXPECT_EQ(run->dispatches[1].gpu, 1) << "GPUs too";
  EXPECT_EQ(run->kernel_name(1), "m, n");
  EXPECT_EQ(column(*run, "A"), (std::vector<double>{1, 10}));
  EXPECT_EQ(column(*run, "C")[0], 3);
  EXPECT_TRUE(std::isnan(column(*run, "C")[1]));
  EXPECT_EQ(column(*run, "Grid_Size"), (std::vector<double>{64, 128}));
  EXPECT_EQ(column(*run, "End_Timestamp"), (std::vector<double>{100, 60})) << "median over the rows";
}

TEST(Layout, LongFormInSeveralFilesAndCompressed) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  const std::string header = std::string(kLong).substr(0, std::string(kLong).find('\n') + 1);
  folder.write("results_pmc_perf_0.csv",
               header + "0,0,64,64,0,0,4,4,16,k,0,10,12,A,1\n0,1,64,64,0,0,4,4,16,k,0,12,12,A,2\n");
  folder.write("results_pmc_perf_1.csv",
               header + "0,0,64,64,0,0,4,4,16,k,0,11,12,B,3\n0,1,64,64,0,0,4,4,16,k,0,13,12,B,4\n");
  const std::string level = header + "0,0,64,64,0,0,4,4,16,k,0,10,12,SQ_ACCUM_PREV_HIRES,5\n0,1,64,64,0,0,4,4,16,k,0,"
                                     "12,12,SQ_ACCUM_PREV_HIRES,6\n";
  gzFile gz = gzopen((folder.path() + "/results_SQ_LEVEL_WAVES.csv.gz").c_str(), "wb");
  gzwrite(gz, level.data(), static_cast<unsigned>(level.size()));
  gzclose(gz);
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(column(*run, "A"), (std::vector<double>{1, 2}));
  EXPECT_EQ(column(*run, "B"), (std::vector<double>{3, 4}));
  EXPECT_EQ(column(*run, "SQ_LEVEL_WAVES_ACCUM"), (std::vector<double>{5, 6}));
}

TEST(Layout, LongFormRepeatsThatDifferAreNamed) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv",
               std::string(kLong) + "7,2,64,64,0,0,4,4,16,k,0,1,12,A,8\n7,2,64,64,0,0,4,4,16,other,0,1,12,A,8\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  expect_warning(*run, "1 counter values are given twice and differ");
  expect_warning(*run, "1 dispatch ids belong to different kernels");
}

std::string config_of(const std::vector<std::vector<std::string>>& files) {
  std::vector<RunEntry> runs;
  for (const auto& each : files) {
    RunEntry& run = runs.emplace_back();
    run.number = static_cast<int>(runs.size());
    run.command = {"./app", "-n", "4"};
    run.timestamp = "day " + std::to_string(run.number);
    run.files = each;
  }
  return config_text(runs);
}

TEST(OwnRuns, ValuesOfTheNewestCountInEitherForm) {
  const std::string wide = "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,";
  const std::string lengthy = std::string(kLong).substr(0, std::string(kLong).find('\n') + 1);
  const auto row = [](const char* counter, int value) {
    return fmt::format("0,0,64,64,0,0,4,4,16,k,0,10,0,{},{}\n", counter, value);
  };
  {
    Folder folder;
    folder.write("sysinfo.csv", kSysInfo);
    folder.write("pmc_perf_0.csv", wide + "A,B\n0,k,0,64,1,2\n");
    folder.write("pmc_perf_1.csv", wide + "A,C\n0,k,0,64,10,30\n");
    folder.write("profiling_config.yaml", config_of({{"pmc_perf_0.csv"}, {"pmc_perf_1.csv"}}));
    const auto run = read(folder);
    ASSERT_TRUE(run) << sentence(run);
    EXPECT_EQ(column(*run, "A"), std::vector<double>{10});
    EXPECT_EQ(column(*run, "B"), std::vector<double>{2});
    EXPECT_EQ(column(*run, "C"), std::vector<double>{30});
  }
  {
    Folder folder;
    folder.write("sysinfo.csv", kSysInfo);
    folder.write("results_0.csv", lengthy + row("A", 1) + row("B", 2));
    folder.write("results_1.csv", lengthy + row("A", 10) + row("C", 30));
    folder.write("profiling_config.yaml", config_of({{"results_0.csv"}, {"results_1.csv"}}));
    const auto run = read(folder);
    ASSERT_TRUE(run) << sentence(run);
    EXPECT_TRUE(run->long_form);
    EXPECT_EQ(column(*run, "A"), std::vector<double>{10});
    EXPECT_EQ(column(*run, "B"), std::vector<double>{2});
    EXPECT_EQ(column(*run, "C"), std::vector<double>{30});
  }
  for (const bool long_newest : {false, true}) {
    Folder folder;
    folder.write("sysinfo.csv", kSysInfo);
    folder.write("pmc_perf_0.csv", wide + "A,B,Start_Timestamp,End_Timestamp\n0,k,0,64,1,2,1000,1030\n");
    folder.write("results_1.csv", lengthy + row("A", 10) + row("C", 30));
    folder.write("profiling_config.yaml", long_newest ? config_of({{"pmc_perf_0.csv"}, {"results_1.csv"}})
                                                      : config_of({{"results_1.csv"}, {"pmc_perf_0.csv"}}));
    const auto run = read(folder);
    ASSERT_TRUE(run) << sentence(run);
    EXPECT_EQ(column(*run, "A"), std::vector<double>{long_newest ? 10.0 : 1.0});
    EXPECT_EQ(column(*run, "B"), std::vector<double>{2});
    EXPECT_EQ(column(*run, "C"), std::vector<double>{30});
    EXPECT_EQ(column(*run, "End_Timestamp")[0] - column(*run, "Start_Timestamp")[0], 20) << "mean of 10 and 30";
  }
}

TEST(OwnRuns, LevelPassesOfSeveralRunsGoTogether) {
  const std::string header = "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,SQ_LEVEL_WAVES,SQ_ACCUM_PREV_HIRES,";
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("SQ_LEVEL_WAVES.csv", header + "SQ_WAVES\n0,k,0,64,1,100,5\n1,m,0,64,2,200,6\n");
  folder.write("profiling_config.yaml", config_of({{"SQ_LEVEL_WAVES.csv"}}));
  const auto one = read(folder);
  ASSERT_TRUE(one) << sentence(one) << ": there is no other pass than that of a level";
  EXPECT_EQ(one->dispatches.size(), 2U);
  EXPECT_EQ(column(*one, "SQ_ACCUM_PREV_HIRES", "SQ_LEVEL_WAVES"), (std::vector<double>{100, 200}));

  folder.write("SQ_LEVEL_WAVES_1.csv", header + "SQ_BUSY_CYCLES\n0,k,0,64,1,101,7\n1,m,0,64,2,201,8\n");
  folder.write("SQ_IFETCH_LEVEL_1.csv", "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,SQ_IFETCH_LEVEL,SQ_ACCUM_PREV_HIRES\n"
                                        "0,k,0,64,3,300\n1,m,0,64,4,400\n");
  folder.write("profiling_config.yaml",
               config_of({{"SQ_LEVEL_WAVES.csv"}, {"SQ_LEVEL_WAVES_1.csv", "SQ_IFETCH_LEVEL_1.csv"}}));
  const auto two = read(folder);
  ASSERT_TRUE(two) << sentence(two);
  EXPECT_EQ(column(*two, "SQ_ACCUM_PREV_HIRES", "SQ_LEVEL_WAVES"), (std::vector<double>{101, 201}))
      << "of the newest run";
  EXPECT_EQ(column(*two, "SQ_WAVES", "SQ_LEVEL_WAVES"), (std::vector<double>{5, 6}));
  EXPECT_EQ(column(*two, "SQ_BUSY_CYCLES", "SQ_LEVEL_WAVES"), (std::vector<double>{7, 8}));
  EXPECT_EQ(column(*two, "SQ_ACCUM_PREV_HIRES", "SQ_IFETCH_LEVEL"), (std::vector<double>{300, 400}));

  Folder lengthy;
  lengthy.write("sysinfo.csv", kSysInfo);
  lengthy.write("results_SQ_LEVEL_WAVES_1.csv", std::string(kLong).substr(0, std::string(kLong).find('\n') + 1) +
                                                    "0,0,64,64,0,0,4,4,16,k,0,10,0,SQ_ACCUM_PREV_HIRES,9\n");
  EXPECT_EQ(column(*read(lengthy), "SQ_LEVEL_WAVES_ACCUM"), std::vector<double>{9});
}

TEST(OwnRuns, ThePropertiesAreThoseOfTheRunThatIsShown) {
  Folder folder;
  folder.write("sysinfo.csv", "workload_name,command,ip_blocks,timestamp,gpu_arch\nw,./first,roofline,day 0,gfx90a\n");
  folder.write("pmc_perf_0.csv", "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,A\n0,k,0,64,1\n");
  folder.write("pmc_perf_1.csv", "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,A\n0,k,0,64,1\n");
  folder.write("profiling_config.yaml", config_of({{"pmc_perf_0.csv"}, {"pmc_perf_1.csv"}}));
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(run->sysinfo.get("command"), "./app -n 4");
  EXPECT_EQ(run->sysinfo.get("timestamp"), "day 2");
  EXPECT_EQ(run->sysinfo.get("ip_blocks"), "all");
}

TEST(OwnRuns, AMissingTimeIsNoTime) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  const std::string header = "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,";
  folder.write("pmc_perf_0.csv", header + "A,Start_Timestamp,End_Timestamp\n0,k,0,64,1,100,140\n1,m,0,64,1,,\n");
  folder.write("pmc_perf_1.csv", header + "B,Start_Timestamp,End_Timestamp\n0,k,0,64,1,,\n1,m,0,64,1,,\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  const auto start = column(*run, "Start_Timestamp"), end = column(*run, "End_Timestamp");
  EXPECT_EQ(end[0] - start[0], 40);
  EXPECT_TRUE(std::isnan(start[1]) && std::isnan(end[1]));
}

TEST(Layout, RecordedBlocksOfTheProfileRun) {
  for (const char* text : {"filter_blocks:\n- '2'\n- 11.2\nkernel: null\n", "filter_blocks: ['2', 11.2]\n",
                           "filter_blocks:\n  '2': metric_id\n  11.2: metric_id\nx: 1\n"}) {
    Folder folder;
    folder.write("sysinfo.csv", kSysInfo);
    folder.write("pmc_perf.csv", kWide);
    folder.write("profiling_config.yaml", text);
    EXPECT_EQ(read(folder)->recorded_blocks, (std::vector<std::string>{"2", "11.2"})) << text;
  }
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv", kWide);
  folder.write("profiling_config.yaml", "filter_blocks: []\nkernel: null\n");
  EXPECT_TRUE(read(folder)->recorded_blocks.empty());
}

TEST(Find, DescendsToTheOnlyWorkloadOrListsThem) {
  Folder folder;
  folder.write("vcopy/MI200/pmc_perf.csv", kWide);
  folder.write("vcopy/MI200/perfmon/pmc_perf_0.csv", "x\n");
  EXPECT_EQ(find_workload(folder.path() + "/").value(), folder.path() + "/vcopy/MI200");
  folder.write("vcopy/MI300/pmc_perf.csv", kWide);
  const auto several = find_workload(folder.path());
  ASSERT_FALSE(several);
  EXPECT_NE(several.error().message.find("2 profile folders"), std::string::npos);
  EXPECT_NE(several.error().message.find("vcopy/MI200"), std::string::npos);
  EXPECT_NE(several.error().message.find("vcopy/MI300"), std::string::npos);
}

// Bad input

std::string find_error(const Folder& folder) {
  const auto found = find_workload(folder.path());
  return found ? "no error" : found.error().message;
}

TEST(Find, TellsOfARunThatDidNotFinish) {
  Folder folder;
  folder.write("w/virtual/sysinfo.csv", kSysInfo);
  folder.write("w/virtual/log.txt", "");
  const std::string text = sentence(read(folder));
  EXPECT_NE(text.find("w/virtual: it has a sysinfo.csv, but no counter file: the profile run did not finish"),
            std::string::npos)
      << text;
}

TEST(BadInput, NoFolderAFileAnEmptyFolder) {
  EXPECT_NE(find_workload("/nonexistent").error().message.find("no such folder"), std::string::npos);
  Folder folder;
  EXPECT_NE(find_error(folder).find("it is empty"), std::string::npos);
  folder.write("a.txt", "x");
  EXPECT_NE(find_workload(folder.path() + "/a.txt").error().message.find("is a file"), std::string::npos);
  EXPECT_NE(find_error(folder).find("nothing that rocprof-compute writes"), std::string::npos);
}

TEST(BadInput, AnotherToolsFolder) {
  Folder folder;
  folder.write("12_kernel_trace.csv", "x\n");
  EXPECT_NE(find_error(folder).find("rocprofv3"), std::string::npos);
  Folder traces;
  traces.write("run.rpd", "x");
  EXPECT_NE(find_error(traces).find("tacho stats"), std::string::npos);
  Folder unfinished;
  unfinished.write("sysinfo.csv", kSysInfo);
  EXPECT_NE(find_error(unfinished).find("did not finish"), std::string::npos);
  Folder counters;
  counters.write("sysinfo.csv", kSysInfo);
  counters.write("pmc_perf.csv", "time,value\n1,2\n");
  EXPECT_NE(sentence(read(counters)).find("no column Kernel_Name"), std::string::npos);
}

TEST(BadInput, MissingEmptyAndCutSysinfo) {
  Folder folder;
  folder.write("pmc_perf.csv", kWide);
  EXPECT_NE(sentence(read(folder)).find("sysinfo.csv"), std::string::npos);
  folder.write("sysinfo.csv", "");
  EXPECT_NE(sentence(read(folder)).find("empty"), std::string::npos);
  folder.write("sysinfo.csv", "gpu_arch,cu_per_gpu\n");
  EXPECT_NE(sentence(read(folder)).find("no row with values"), std::string::npos);
  folder.write("sysinfo.csv", "gpu_arch,cu_per_gpu\ngfx90a\n");
  EXPECT_NE(sentence(read(folder)).find("row 2 has 1 fields, the header has 2"), std::string::npos);
  folder.write("sysinfo.csv", "a,b\n1,2\n");
  EXPECT_NE(sentence(read(folder)).find("architecture"), std::string::npos);
}

TEST(BadInput, EmptyAndHeaderOnlyCounters) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv", "");
  EXPECT_NE(sentence(read(folder)).find("pmc_perf.csv: the file is empty"), std::string::npos);
  const std::string text = kWide;
  folder.write("pmc_perf.csv", text.substr(0, text.find('\n') + 1));
  EXPECT_NE(sentence(read(folder)).find("not one dispatch"), std::string::npos);
}

TEST(BadInput, ACutFileLosesItsLastRowAndSaysSo) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  const std::string text = kWide;
  folder.write("pmc_perf.csv", text.substr(0, text.rfind(",17,") + 2));
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(run->dispatches.size(), 2U);
  expect_warning(*run, "row 4: row is cut off at the end of the file (7 of 10 fields); left out");
  // Cut inside the last number: the row is whole, but its time is not.
  folder.write("pmc_perf.csv", text.substr(0, text.size() - 5));
  const auto short_time = read(folder);
  ASSERT_TRUE(short_time) << sentence(short_time);
  EXPECT_EQ(short_time->dispatches.size(), 2U);
  expect_warning(*short_time, "does not end in a newline");
  expect_warning(*short_time, "1 of 3 dispatches ends before it starts (first: row 4)");
}

TEST(BadInput, RaggedRowsAreLeftOutAndCounted) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv", std::string(kWide) + "3,b.kd,2\n4,b.kd,2,1,1,1,1,1,1,2,3,4\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(run->dispatches.size(), 3U);
  expect_warning(
      *run, "2 times, first in row 5: row has another number of fields than the header (3 of 10 fields); left out");
}

TEST(BadInput, CellsThatAreNoNumbersAreMissingAndCounted) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv",
               std::string(kWide) +
                   "3,b.kd,2,64,64,0,many,1,0,9\n4,b.kd,2,64,64,0,\x1b[31m,1,0,9\nfive,b.kd,2,64,64,0,1,1,0,9\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(run->dispatches.size(), 5U);
  EXPECT_TRUE(std::isnan(column(*run, "SQ_WAVES")[3]));
  EXPECT_TRUE(std::isnan(column(*run, "SQ_WAVES")[4]));
  expect_warning(*run, "2 times, first in row 5: value is not a number (SQ_WAVES: 'many'); treated as missing");
  expect_warning(*run, "row 7: Dispatch_ID is not a number");
}

TEST(BadInput, KernelNamesWithQuotesCommasAndNewlines) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv", "Dispatch_ID,Kernel_Name,A\n0,\"f<\"\"a, b\"\">(\nint)\",1\n1,g,2\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(run->kernels, (std::vector<std::string>{"f<\"a, b\">(\nint)", "g"}));
  folder.write("pmc_perf.csv", "Dispatch_ID,Kernel_Name,A\n0,\"f,1\n1,g,2\n");
  EXPECT_NE(sentence(read(folder)).find("quote opened in row 2 is never closed"), std::string::npos);
}

TEST(BadInput, DispatchesThatCountedNothingAreLeftOut) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv", std::string(kWide) + "3,b.kd,2,64,64,0,5,0,10,20\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(run->dispatches.size(), 3U);
  expect_warning(*run, "1 of 4 dispatches has GRBM_GUI_ACTIVE = 0 (first: row 5)");
  ReadOptions compat;
  compat.compat = true;
  EXPECT_NE(sentence(read(folder, compat)).find("rocprof-compute 3.3 stops here"), std::string::npos);
  folder.write("pmc_perf.csv", "Dispatch_ID,Kernel_Name,GRBM_GUI_ACTIVE\n0,k,0\n");
  EXPECT_NE(sentence(read(folder)).find("GRBM_GUI_ACTIVE is 0 in 1 of 1"), std::string::npos);
}

TEST(BadInput, DispatchesThatEndBeforeTheyStartAreLeftOut) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv", "Dispatch_ID,Kernel_Name,A,Start_Timestamp,End_Timestamp\n0,k,1,10,20\n1,k,2,30,20\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(column(*run, "A"), (std::vector<double>{1}));
  expect_warning(*run, "1 of 2 dispatches ends before it starts (first: row 3)");
}

TEST(BadInput, HostileNumbersDoNotOverflow) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv",
               "Dispatch_ID,Kernel_Name,GPU_ID,A,Start_Timestamp,End_Timestamp\n"
               "-9223372036854775808,k,9223372036854775807,1e308,-9223372036854775808,9223372036854775807\n"
               "1,k,0,99999999999999999999999999,9223372036854775807,-9223372036854775808\n2,k,0,-0,1e999,nan\n");
  const auto run = read(folder);
  EXPECT_TRUE(run) << sentence(run);
}

TEST(BadInput, ABrokenLevelFileOnlyCostsItsMetrics) {
  Folder folder;
  folder.write("sysinfo.csv", kSysInfo);
  folder.write("pmc_perf.csv", kWide);
  folder.write("SQ_LEVEL_WAVES.csv", "");
  folder.write("roofline.csv", "device,HBMBw\n0,not a number\n1,2,3\n");
  const auto run = read(folder);
  ASSERT_TRUE(run) << sentence(run);
  EXPECT_EQ(run->pass("SQ_LEVEL_WAVES"), nullptr);
  expect_warning(*run, "SQ_LEVEL_WAVES.csv: the file is empty; metrics of that pass are not computable");
  expect_warning(*run, "ceiling is not a number");
  expect_warning(*run, "2 fields");
}

TEST(Large, TablesAboveTheLimitStandInATemporaryFile) {
  const size_t rows = CounterTable::kSpillBytes / sizeof(double) / 4 + 1000;
  auto table = CounterTable::create({"a", "b", "c", "d"}, rows);
  ASSERT_TRUE(table) << table.error().message;
  table->data(3)[rows - 1] = 42;
  EXPECT_EQ(table->column("d")[rows - 1], 42);
  EXPECT_TRUE(std::isnan(table->column("c")[rows - 1]));
  const std::string temporary = ::getenv("TMPDIR");
  ::setenv("TMPDIR", "/nonexistent", 1);
  const auto refused = CounterTable::create({"a", "b", "c", "d"}, rows);
  ::setenv("TMPDIR", temporary.c_str(), 1);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("set TMPDIR"), std::string::npos);
}

}  // namespace
}  // namespace tacho::workload
