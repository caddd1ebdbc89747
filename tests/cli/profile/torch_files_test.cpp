// Operators of PyTorch in a profile: launches of CUDA graphs, which are measured as a whole, beside kernels.
#include "cli/profile/torch_files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "analysis/recorded_operators.h"
#include "workload/torch_trace.h"

namespace tacho::cli {
namespace {

// A kernel, two launches of a graph, the second by an operator, and a kernel again.
TEST(TorchFiles, AGraphIsOneDispatchAndItsNodesAreListed) {
  analysis::Recorded recorded;
  const int64_t main = recorded.main();
  recorded.range(main, 100, 100, "nn.Module.Linear.forward", "torch", "module Net.head @ /home/u/decode.py:20");
  recorded.range(main, 110, 50, "torch.nn.functional.linear", "torch", "function @ /home/u/net.py:7");
  recorded.kernel(main, 112, 10);
  recorded.mark(main, 120, "graph node", 11);
  recorded.mark(main, 170, "graph node", 12);
  recorded.of_graph(7, "graph of 3 nodes: k x3");
  recorded.kernels(main, 1010, {{11, 30}, {12, 10}, {99, 5}});
  recorded.range(main, 1200, 500, "Decode", "torch", "user");
  recorded.kernels(main, 1210, {{11, 50}, {12, 10}, {99, 5}});
  recorded.of_graph(0, "");
  recorded.range(main, 2000, 50, "aten::relu", "NVTX");
  recorded.kernel(main, 2010, 4);
  recorded.open();

  trace::Folder place;
  auto folder = workload::FolderWriter::open(place / "w", false);
  ASSERT_TRUE(folder) << folder.error().message;
  std::string rows =
      "Dispatch_ID,GPU_ID,Queue_ID,Kernel_Name,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Kernel_ID,cycles,Start_Timestamp,End_Timestamp\n"
      "";
  const char* const names[] = {"k", "CUDA graph", "CUDA graph", "k"};
  for (int i = 0; i < 4; ++i)
    rows += std::to_string(i) + ",0,1," + names[i] + ",1,1,0,0,0,0,0,1," + std::to_string(100 + i) + ",1,2\n";
  ASSERT_TRUE(folder->write("pmc_perf_0.csv", rows));
  std::vector<std::string> notes;
  const Status written = write_torch_files(*folder, recorded.file(), {"pmc_perf_0.csv"}, notes);
  ASSERT_TRUE(written) << written.error().message;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "1 of 4 dispatches was launched outside of PyTorch's operators");

  const auto trace = workload::read_torch_trace(folder->folder(), {});
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->operators.size(), 3u);
  EXPECT_EQ(trace->operators[0].name, "Decode");
  EXPECT_EQ(trace->operators[0].dispatches, std::set<int64_t>{2});
  EXPECT_EQ(trace->operators[0].kernels, std::set<std::string>{"CUDA graph"});
  EXPECT_EQ(trace->operators[0].kernel_ns, 65);  // from the first node to the end of the last
  EXPECT_EQ(trace->operators[1].name, "aten::relu");
  EXPECT_EQ(trace->operators[1].dispatches, std::set<int64_t>{3});
  EXPECT_EQ(trace->operators[2].name, "nn.Module.Linear.forward/torch.nn.functional.linear");
  EXPECT_EQ(trace->operators[2].dispatches, std::set<int64_t>{0});

  const auto& parts = trace->graph_parts;
  ASSERT_EQ(parts.size(), 3u);
  for (const workload::TorchGraphPart& each : parts) {
    EXPECT_EQ(each.graph, "graph of 3 nodes: k x3");
    EXPECT_EQ(each.number, 1);
    EXPECT_EQ(each.launches, 2);
    EXPECT_EQ(each.kernels, 2);
  }
  EXPECT_EQ(parts[0].name, "nn.Module.Linear.forward/torch.nn.functional.linear");
  EXPECT_EQ(parts[0].ns, 80);
  EXPECT_EQ(parts[1].name, "nn.Module.Linear.forward");
  EXPECT_EQ(parts[1].ns, 20);
  EXPECT_EQ(parts[2].name, "");  // made before tracing began
  EXPECT_EQ(parts[2].ns, 10);
}

}  // namespace
}  // namespace tacho::cli
