// Names of runs.
#include "base/files/run_name.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "base/files/temporary.h"

namespace tacho {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(RunName, AfterTheScriptNotTheInterpreter) {
  const std::pair<const char*, const char*> cases[] = {
      {"./vcopy -n 5", "vcopy"},
      {"python3 train.py", "train"},
      {"/usr/bin/python3.11 -u -X dev -W ignore src/train.py --lr 1", "train"},
      {"python -m pkg.mod --x", "pkg.mod"},
      {"python3 -um pkg", "pkg"},
      {"python3 -mpkg.mod", "pkg.mod"},
      {"python3 -c print(1)", "python3"},
      {"python3 -", "python3"},
      {"python3", "python3"},
      {"python3 tools/bench/__main__.py", "bench"},
      {"python3 -m torch.distributed.run --nproc-per-node 4 train.py --lr 1", "train"},
      {"torchrun --nproc-per-node 4 train.py", "train"},
      {"accelerate launch --mixed_precision bf16 -m pkg.train", "pkg.train"},
      {"env A=1 B=2 python3 x.py", "x"},
      {"env -u A ./app", "app"},
      {"timeout -k 5 10 nice -n 5 ./app x", "app"},
      {"taskset -c 0-3 ./app", "app"},
      {"bash run.sh fast", "run"},
      {"bash -c ls", "bash"},
      {"sh", "sh"},
      {"./train.py", "train"},
      {"mpirun -n 4 --bind-to core python3 train.py", "train"},
      {"srun --gpus 4 /bin/sh", "sh"},
      {"mpirun -n 4 app", "mpirun"},
      {"env", "env"},
      {"/", "trace"}};
  for (const auto& [line, name] : cases) EXPECT_EQ(run_name(words_of(line)), name) << line;
  EXPECT_EQ(run_name({}), "trace");
  EXPECT_TRUE(runs_script(words_of("python3 a.py")));
  EXPECT_FALSE(runs_script(words_of("./app a.py")));
}

TEST(RunName, MayRunPython) {
  for (const char* line : {"python3 a.py", "/usr/bin/python3.11 -c 1", "torchrun --nproc-per-node 2 train.py",
                           "sh job.sh", "env A=1 python3 -m pkg", "numactl -N 0 python3 a.py",
                           "mpirun -n 2 python3 a.py", "uv run train.py", "/usr/bin/perf record python3 a.py"})
    EXPECT_TRUE(may_run_python(words_of(line))) << line;
  for (const char* line : {"/bin/ls", "ls -l", "env A=1 /bin/ls", "./no_such_program"})
    EXPECT_FALSE(may_run_python(words_of(line))) << line;
  EXPECT_FALSE(may_run_python({}));
}

TEST(RunName, Interpreters) {
  auto made = TemporaryFolder::create(::testing::TempDir() + "run-name-");
  ASSERT_TRUE(made) << made.error().message;
  const std::string folder = made->path() + "/";
  const auto file = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + name, std::ios::binary) << text;
    return folder + name;
  };
  EXPECT_EQ(interpreter_of(file("run_name_a.py", "print(1)\n")), "python3");
  EXPECT_EQ(interpreter_of(file("run_name_b", "#!/usr/bin/env -S python3.11 -u\n")), "python3.11");
  EXPECT_EQ(interpreter_of(file("run_name_c", "#! /bin/bash -e\n")), "bash");
  EXPECT_EQ(interpreter_of(file("run_name_d.py", "\x7f"
                                                 "ELF...")),
            "");
  EXPECT_EQ(interpreter_of(file("run_name_e.txt", "hello")), "");
  EXPECT_EQ(interpreter_of(folder + "run_name_missing"), "");
  EXPECT_TRUE(starts_by_itself(folder + "run_name_c"));
  EXPECT_FALSE(starts_by_itself(folder + "run_name_a.py"));
}

}  // namespace
}  // namespace tacho
