// Operators of PyTorch in profile folders: which names a pattern matches, and files that are not as they should be.
#include "workload/torch_trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tacho::workload {
namespace {

TEST(TorchOperator, MatchesAsPurePosixPath) {
  constexpr const char* kName = "nn.Module.Net.forward/nn.Module.Conv2d.forward/torch.nn.functional.conv2d";
  for (const char* pattern :
       {"all", "*", "**", "*conv2d", "torch.nn.functional.conv2d", "*/*conv2d", "nn.Module.Conv2d.forward/*",
        "*/*/*conv2d", "*.conv?d", "*conv[0-9]d", "*conv[!a-z]d", "./*conv2d", "*/**/*conv2d"})
    EXPECT_TRUE(torch_operator_matches(pattern, kName)) << pattern;
  for (const char* pattern : {"conv2d", "*relu", "/*conv2d", "*/*/*/*conv2d", "nn.Module.Net.forward", "*CONV2D", "",
                              "*conv[!0-9]d", "*conv[0-", "*/relu/*conv2d"})
    EXPECT_FALSE(torch_operator_matches(pattern, kName)) << pattern;
}

TEST(TorchTrace, WhatCannotBeReadIsOneSentence) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "torch_trace_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  EXPECT_FALSE(read_torch_trace(folder.string(), {}));
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  };
  const char* const marker = "torch_trace_0_marker_api_trace.csv";
  const char* const counters = "torch_trace_0_counter_collection.csv";
  write(marker, "Function,Correlation_ID,Start_Timestamp,End_Timestamp\na/b:#1@x.py:3,1,10,20\n");
  write(counters, "Correlation_ID,Dispatch_ID,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp\n");
  auto read = read_torch_trace(folder.string(), {});
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("End_Timestamp"), std::string::npos);
  const std::string head =
      "Correlation_ID,Dispatch_ID,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp\n";
  for (const char* row : {"1,2\n", "1,two,k,C,1,2,3\n", "1,\"2,k"}) {
    write(counters, (head + row).c_str());
    EXPECT_FALSE(read_torch_trace(folder.string(), {})) << row;
  }
  write(counters, (head + "1,7,k,C,5,12,15\n1,7,k,D,6,12,15\n9,8,k,C,5,12,15\n").c_str());
  read = read_torch_trace(folder.string(), {});
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->operators.size(), 1u);
  EXPECT_EQ(read->operators[0].name, "a/b");
  EXPECT_EQ(read->operators[0].calls, 1u);
  EXPECT_EQ(read->operators[0].dispatches, std::set<int64_t>{7});
  EXPECT_EQ(read->operators[0].contexts, std::set<std::string>{"x.py:3"});
  EXPECT_EQ(read->operators[0].kernel_ns, 3);
  std::ifstream file(folder / "torch_trace" / "consolidated.csv");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find("\na/b,1@x.py:3,k,C,5,10,20,12,15\na/b,1@x.py:3,k,D,6,10,20,12,15\n"), std::string::npos) << text;
  EXPECT_FALSE(read_torch_trace(folder.string(), {"pmc_perf_3.csv"}));  // of another run
  // Newer versions of rocprof-compute have another name for the files.
  write("ml_api_trace_1_marker_api_trace.csv",
        "Function,Correlation_ID,Start_Timestamp,End_Timestamp\nc/d:#1@y.py:3,1,10,20\n");
  write("ml_api_trace_1_counter_collection.csv", (head + "1,7,k,C,5,12,15\n").c_str());
  fs::remove_all(folder / "torch_trace");
  read = read_torch_trace(folder.string(), {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->operators.size(), 2u);
  fs::remove(folder / "ml_api_trace_1_marker_api_trace.csv");
  fs::remove_all(folder / "torch_trace");

  // The parts of CUDA graphs.
  EXPECT_TRUE(read->graph_parts.empty());
  const char* const graphs = "torch_trace_0_graph_nodes.csv";
  const std::string columns(kGraphHeader);
  for (const std::string& bad : {std::string("Graph_Name,Launches\ng,1\n"), columns + "g,1,2\n",
                                 columns + "g,1,two,a,3,4\n", columns + "g,1,2,a,3,-4\n"}) {
    write(graphs, bad.c_str());
    EXPECT_FALSE(read_torch_trace(folder.string(), {})) << bad;
  }
  write(graphs, (columns + "\"g, 2 nodes\",1,50,a/b,100,4000\n").c_str());
  read = read_torch_trace(folder.string(), {});
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->graph_parts.size(), 1u);
  EXPECT_EQ(read->graph_parts[0].graph, "g, 2 nodes");
  EXPECT_EQ(read->graph_parts[0].launches, 50);
  EXPECT_EQ(read->graph_parts[0].name, "a/b");
  EXPECT_EQ(read->graph_parts[0].kernels, 100);
  EXPECT_EQ(read->graph_parts[0].ns, 4000);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tacho::workload
