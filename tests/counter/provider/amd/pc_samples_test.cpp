// PC samples of AMD GPUs as the target leaves them: pieces, code objects, URIs; and the files that are made of them.
#include "counter/provider/amd/pc_samples.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "support/golden.h"
#include "vendor/amd/sdk_sampling.h"

namespace {

using namespace tacho::counter;
namespace sdk = tacho::vendor::sdk;

template <typename T>
std::string words(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string piece(uint32_t category, uint32_t kind, std::string payload) {
  const sdk::PieceHeader header{category, kind, payload.size()};
  payload.resize((payload.size() + 7) / 8 * 8);
  return words(header) + payload;
}
std::string own(sdk::Spooled kind, std::string payload) {
  return piece(sdk::kSpoolCategory, static_cast<uint32_t>(kind), std::move(payload));
}
std::string run_piece(uint32_t version, sdk::SamplingMethod method) {
  return own(sdk::Spooled::kRun, words(sdk::SpooledRun{version, static_cast<int32_t>(method), 42, 0}));
}
template <typename T>
void put(std::string& record, sdk::Member<T> member, T value) {
  std::memcpy(record.data() + member.offset, &value, sizeof value);
}
std::string host_trap(uint64_t code, uint64_t offset, uint64_t dispatch, uint64_t time) {
  const sdk::Sample& f = sdk::kHostTrapSample;
  std::string record(f.least, '\0');
  put(record, sdk::any::size, uint64_t{f.least});
  put(record, f.code_object, code);
  put(record, f.offset, offset);
  put(record, f.dispatch, dispatch);
  put(record, f.timestamp, time);
  put(record, f.group_z, 9u);
  return record;
}
std::string dispatch(uint64_t number, uint64_t kernel) {
  std::string record(184, '\0');
  put(record, sdk::any::size, uint64_t{184});
  put(record, sdk::dispatch::number, number);
  put(record, sdk::dispatch::kernel, kernel);
  put(record, sdk::dispatch::grid_x, 64u);
  return record;
}

// A folder with a spool's files.
class SampledFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "sampled_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void process(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name + ".sampled", std::ios::binary) << bytes;
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string folder_;
};

TEST(AmdPcSamples, KindsHaveOtherNumbersInEachVersion) {
  amd::SampledProcess old;
  ASSERT_TRUE(
      amd::parse_sampled(run_piece(600, sdk::SamplingMethod::kHostTrap) + piece(2, 1, host_trap(1, 2, 3, 4)), old));
  ASSERT_EQ(old.samples.size(), 1u);
  EXPECT_EQ(old.samples[0].offset, 2u);
  EXPECT_EQ(old.samples[0].group[2], 9u);
  amd::SampledProcess now;
  ASSERT_TRUE(amd::parse_sampled(run_piece(10000, sdk::SamplingMethod::kHostTrap) + piece(2, 1, host_trap(1, 2, 3, 4)) +
                                     piece(2, 2, host_trap(1, 2, 3, 4)),
                                 now));
  EXPECT_EQ(now.samples.size(), 1u);
  EXPECT_EQ(now.invalid, 1u);
}

TEST(AmdPcSamples, AStochasticSampleSaysWhyItWaited) {
  const sdk::Sample& f = sdk::kStochasticSample;
  std::string record(f.least, '\0');
  put(record, f.exec_mask, uint64_t{0xf});
  put(record, sdk::stochastic::issued, uint8_t{1 | 3 << 1});
  put(record, sdk::stochastic::waves, 7u);
  put(record, sdk::stochastic::snapshot, 3u);
  amd::SampledProcess process;
  ASSERT_TRUE(amd::parse_sampled(run_piece(10000, sdk::SamplingMethod::kStochastic) + piece(2, 3, record), process));
  ASSERT_EQ(process.samples.size(), 1u);
  EXPECT_TRUE(process.samples[0].issued);
  EXPECT_EQ(process.samples[0].type, 3);
  EXPECT_EQ(process.samples[0].waves, 7u);
  EXPECT_EQ(stall_reason_name(process.samples[0].snapshot & 0xf),
            "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT");
  EXPECT_EQ(sampled_type_name(30), "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LAST");
}

TEST(AmdPcSamples, WhatIsNotKnownIsCounted) {
  amd::SampledProcess process;
  ASSERT_TRUE(amd::parse_sampled(
      run_piece(10000, sdk::SamplingMethod::kHostTrap) + piece(2, 2, std::string(40, '\0')) +
          piece(2, 9, std::string(88, '\0')) + piece(7, 1, "12345678") + piece(1, 11, std::string(64, '\0')) +
          own(sdk::Spooled::kDropped, words(uint64_t{5})) + own(static_cast<sdk::Spooled>(99), "12345678"),
      process));
  EXPECT_EQ(process.unknown, 5u);
  EXPECT_EQ(process.dropped, 5u);
  EXPECT_TRUE(process.samples.empty());
}

TEST(AmdPcSamples, AFileThatIsCutOffGivesWhatWasWhole) {
  const std::string bytes = run_piece(10000, sdk::SamplingMethod::kHostTrap) + piece(2, 2, host_trap(1, 2, 3, 4)) +
                            own(sdk::Spooled::kKernel, words(sdk::SpooledKernel{1, 2, 3, 4, 5, 6, 7, 6}) + "kernel");
  for (size_t size = 0; size < bytes.size(); ++size) {
    amd::SampledProcess process;
    amd::parse_sampled(bytes.substr(0, size), process);
    EXPECT_LE(process.samples.size(), 1u);
  }
  amd::SampledProcess process;
  EXPECT_FALSE(amd::parse_sampled(
      own(sdk::Spooled::kKernel, words(sdk::SpooledKernel{1, 2, 3, 4, 5, 6, 7, 600}) + "kernel"), process));
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    amd::SampledProcess any;
    amd::parse_sampled(damaged, any);
  }
}

TEST(AmdPcSamples, UrisOfCodeObjects) {
  std::string path;
  uint64_t offset = 0, size = 0;
  ASSERT_TRUE(amd::parse_code_uri("file:///a%20b/c#offset=4096&size=0x10", path, offset, size));
  EXPECT_EQ(path, "/a b/c");
  EXPECT_EQ(offset, 4096u);
  EXPECT_EQ(size, 16u);
  ASSERT_TRUE(amd::parse_code_uri("file:///plain", path, offset, size));
  EXPECT_EQ(offset + size, 0u);
  EXPECT_FALSE(amd::parse_code_uri("memory://12#offset=1&size=2", path, offset, size));
  EXPECT_FALSE(amd::parse_code_uri("file://", path, offset, size));
}

TEST(AmdPcSamples, AnImageGivesBytesByAddress) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_phoff = sizeof head;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = 2;
  Elf64_Phdr good{}, beyond{};
  good.p_type = beyond.p_type = PT_LOAD;
  good.p_vaddr = 0x1000;
  good.p_offset = sizeof head + 2 * sizeof good;
  good.p_filesz = 8;
  beyond.p_vaddr = 0x9000;
  beyond.p_offset = 1 << 20;
  beyond.p_filesz = 8;
  const std::string bytes = words(head) + words(good) + words(beyond) + "01234567";
  const amd::CodeImage image(bytes);
  EXPECT_EQ(image.at(0x1000, 4), "0123");
  EXPECT_EQ(image.at(0x1006, 64), "67");
  EXPECT_EQ(image.at(0x1008, 4), "");
  EXPECT_EQ(image.at(0x9000, 4), "");
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_LE(amd::CodeImage(bytes.substr(0, size)).at(0x1000, 8).size(), 8u);
  EXPECT_EQ(amd::CodeImage("no ELF").at(0, 1), "");
}

TEST_F(SampledFolder, ProcessesStayApartAndFiltersApply) {
  const auto one = [](const std::string& kernel) {
    return run_piece(10000, sdk::SamplingMethod::kHostTrap) +
           own(sdk::Spooled::kAgent, words(sdk::SpooledAgent{77, 0, 6}) + "gfx942") +
           own(sdk::Spooled::kKernel,
               words(sdk::SpooledKernel{1, 1, 0, 0, 5, 6, 7, static_cast<uint32_t>(kernel.size())}) + kernel) +
           piece(2, 2, host_trap(0, 2, 1, 40)) + piece(2, 2, host_trap(0, 2, 1, 4)) + piece(1, 11, dispatch(1, 1));
  };
  process("0", one("first.kd"));
  process("1", one("second.kd") + std::string("cut"));
  std::vector<std::string> notes;
  auto run = amd::read_sampled(folder_, {}, notes);
  ASSERT_TRUE(run.has_value());
  ASSERT_EQ(run->samples.size(), 4u);
  EXPECT_EQ(run->samples[0].time, 4u);
  EXPECT_EQ(run->samples[3].dispatch, 2u);
  ASSERT_EQ(run->dispatches.size(), 2u);
  EXPECT_EQ(run->dispatches[1].dispatch.kernel, "second");
  EXPECT_EQ(run->dispatches[1].kernel, 2u);
  EXPECT_EQ(notes, (std::vector<std::string>{
                       "PC samples were cut off where the program was killed",
                       "4 PC samples are in code that rocprofiler-sdk did not name; they have an address only"}));
  tacho::counter::Filter filter;
  filter.kernels = {"second"};
  run = amd::read_sampled(folder_, filter, notes);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->samples.size(), 2u);
  EXPECT_EQ(run->dispatches.size(), 1u);
}

TEST_F(SampledFolder, FilesAreRocprofv3s) {
  SampledRun run;
  run.stochastic = true;
  run.instructions = {{"v_add_f32_e32 v0, v1, v2", "a,b.hip:3"}};
  run.kernels = {{1, 1, 0x100, "_Z1kPf"}};
  SampledRun::Sample sample;
  sample.dispatch = 3;
  sample.instruction = 0;
  sample.snapshot = 2;
  run.samples = {sample};
  run.samples.push_back(sample);
  run.samples[1].instruction = -1;
  run.samples[1].offset = 99;
  const std::string prefix = folder_ + "/ps_file";
  ASSERT_TRUE(write_sampled_run(run, prefix, {true, true, true}, false).has_value());
  EXPECT_TRUE(
      tacho::test::is_golden(text_of(prefix + "_pc_sampling_stochastic.csv"), "counter/provider/amd/pc_sampling.out"));
  EXPECT_NE(text_of(prefix + "_results.json").find("\"kernel_code_entry_byte_offset\": 256"), std::string::npos);
  EXPECT_FALSE(write_sampled_run(run, prefix, {true, true, true}, false).has_value());  // they are there
}

}  // namespace
