// The user's own code of call stacks: which frames, and that no time gets lost.
#include "analysis/stacks/own_code.h"

#include <gtest/gtest.h>

namespace tacho::analysis {
namespace {

StackFrame python(const char* name, const char* file, int64_t line = 0) {
  return {StackPart::kPython, name, file, line, ""};
}
StackFrame native(const char* name, const char* module, const char* file = "") {
  return {StackPart::kNative, name, file, 0, module};
}

TEST(OwnCode, WhichFrames) {
  EXPECT_TRUE(own_frame(python("f", "/home/u/train.py")));
  EXPECT_TRUE(own_frame(python("f", "train.py")));
  EXPECT_TRUE(own_frame(python("f", "<string>")));
  EXPECT_TRUE(own_frame(python("f", "/home/u/python3/train.py")));
  EXPECT_FALSE(own_frame(python("f", "/usr/lib/python3.11/json/encoder.py")));
  EXPECT_FALSE(own_frame(python("f", "/root/.pyenv/versions/3.11.7/lib/python3.11/threading.py")));
  EXPECT_FALSE(own_frame(python("f", "/usr/lib/python3/dist-packages/numpy/core/_methods.py")));
  EXPECT_FALSE(own_frame(python("f", "/venv/lib/python3.13t/site-packages/torch/nn/module.py")));
  EXPECT_FALSE(own_frame(python("f", "<frozen importlib._bootstrap>")));
  EXPECT_FALSE(own_frame(python("f", "<pyopencl invoker for 'add'>")));

  // torch.profiler's files: as seen from a folder of sys.path.
  EXPECT_FALSE(own_frame(python("forward", "torch/nn/modules/linear.py")));
  EXPECT_FALSE(own_frame(python("wait", "threading.py")));
  EXPECT_FALSE(own_frame(python("run", "tqdm/_monitor.py")));
  EXPECT_TRUE(own_frame(python("forward", "transformers/models/qwen2/modeling_qwen2.py")));
  EXPECT_TRUE(own_frame(python("f", "model/threading.py")));
  EXPECT_TRUE(own_frame(python("f", "/home/u/torch/train.py")));

  EXPECT_TRUE(own_frame(native("main", "/home/u/build/vcopy", "/home/u/vcopy.cpp")));
  EXPECT_TRUE(own_frame(native("main", "/usr/bin/hashcat")));
  EXPECT_TRUE(own_frame(native("step", "/home/u/build/libsolver.so")));
  EXPECT_FALSE(own_frame(native("push_back", "/home/u/build/vcopy", "/usr/include/c++/12/bits/vector.tcc")));
  EXPECT_FALSE(own_frame(native("_start", "/home/u/build/vcopy")));
  EXPECT_FALSE(own_frame(native("memcpy", "/usr/lib/x86_64-linux-gnu/libc.so.6")));
  EXPECT_FALSE(own_frame(native("_PyEval", "/usr/bin/python3.11")));
  EXPECT_FALSE(own_frame(native("_PyEval", "/opt/py/lib/libpython3.12.so.1.0")));
  EXPECT_FALSE(own_frame(native("f", "/venv/lib/python3.11/site-packages/torch/lib/libtorch.so")));
  EXPECT_FALSE(own_frame(native("f", "/usr/local/cuda-13.0/lib64/libcudart.so.13")));
  EXPECT_FALSE(own_frame(native("main", "/usr/bin/x86_64-linux-gnu-ld.bfd")));
  EXPECT_FALSE(own_frame(native("main", "/usr/bin/bash")));
  EXPECT_TRUE(own_frame(native("main", "/home/u/bin/bash")));
  EXPECT_FALSE(own_frame(native("f", "[vdso]")));
  EXPECT_FALSE(own_frame(native("0x7f", "")));
  EXPECT_FALSE(own_frame({StackPart::kDevice, "kernel", "", 0, "/home/u/a.so"}));
}

// root > runpy > my_main > json > my_hook, kernel below json; malloc in a thread of a library
StackTree sample() {
  StackTree tree;
  tree.frames = {{StackPart::kRoot, "all", "", 0, ""},
                 python("_run", "/usr/lib/python3.11/runpy.py", 88),
                 python("main", "/home/u/train.py", 10),
                 python("encode", "/usr/lib/python3.11/json/encoder.py", 200),
                 python("hook", "/home/u/train.py", 4),
                 {StackPart::kDevice, "scale", "", 0, ""},
                 native("malloc", "/lib/x86_64-linux-gnu/libc.so.6")};
  //             parent, frame, host, samples, gpu, launches
  tree.nodes = {{0, 0, 0, 0, 0, 0},  {0, 1, 10, 1, 0, 0},  {1, 2, 20, 2, 0, 0}, {2, 3, 30, 3, 0, 0},
                {3, 4, 40, 4, 0, 0}, {3, 5, 0, 0, 500, 7}, {0, 6, 50, 5, 0, 0}};
  tree.samples = 15;
  tree.host_ns = 150;
  tree.gpu_ns = 500;
  return tree;
}

TEST(OwnCode, LibrariesCountForTheirCallers) {
  const auto share = own_share(sample());
  EXPECT_EQ(share.host_ns, 90);
  EXPECT_EQ(share.gpu_ns, 500);
  const auto rows = stack_rows(own_code(sample()), StackBy::kLine);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].frame.name, "main");
  EXPECT_EQ(rows[0].self_ns, 50);  // its own 20 and the encoder's 30
  EXPECT_EQ(rows[0].total_ns, 90);
  EXPECT_EQ(rows[0].gpu_self_ns, 500);
  EXPECT_EQ(rows[1].frame.name, "[other code]");
  EXPECT_EQ(rows[1].self_ns, 60);
  EXPECT_EQ(rows[2].frame.name, "hook");
  EXPECT_EQ(rows[2].self_ns, 40);
}

TEST(OwnCode, StacksBeginWithOwnCode) {
  const auto rows = stack_rows(own_code(sample()), StackBy::kStack);
  std::vector<std::string> stacks;
  int64_t host = 0, gpu = 0, samples = 0;
  for (const StackRow& row : rows) {
    stacks.push_back(row.stack);
    host += row.self_ns;
    gpu += row.gpu_self_ns;
    samples += row.samples;
  }
  EXPECT_EQ(host, 150);
  EXPECT_EQ(gpu, 500);
  EXPECT_EQ(samples, 15);
  EXPECT_EQ(stacks, (std::vector<std::string>{"main (train.py:10);scale", "[other code]", "main (train.py:10)",
                                              "main (train.py:10);hook (train.py:4)"}));
}

TEST(OwnCode, NothingOfOnesOwnChangesNothing) {
  StackTree tree = sample();
  for (StackFrame& frame : tree.frames) frame.file = frame.file.empty() ? "" : "/usr/lib/python3.11/x.py";
  EXPECT_EQ(own_code(tree).nodes.size(), tree.nodes.size());
  EXPECT_EQ(own_share(tree).host_ns, 0);
}

}  // namespace
}  // namespace tacho::analysis
