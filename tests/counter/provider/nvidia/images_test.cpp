// Counter data images of a run: evaluated, removed, and assigned to the right one of several GPUs. The recorded ones
// are of two H200s, two launches of 6144 warp instructions on each (tests/device/counter_images.cu, CUPTI 13.0).
#include "counter/provider/nvidia/images.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "counter/provider/nvidia/host.h"

namespace tacho::counter::nvidia {
namespace {

namespace fs = std::filesystem;

class NvidiaImages : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tacho-images-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    if (Host::library().empty()) {
#ifdef TACHO_CUDA_HOME
      FAIL() << "the CUDA toolkit is installed in " TACHO_CUDA_HOME ", but its libcupti.so was not found";
#else
      GTEST_SKIP() << "no CUPTI on this machine";
#endif
    }
    auto opened = Host::open("GH100");
    ASSERT_TRUE(opened) << opened.error().message;
    host = std::move(*opened);
  }
  void TearDown() override {
    std::error_code error;
    if (!folder.empty()) fs::remove_all(folder, error);
  }
  static std::string recorded(int gpu) {
    std::ifstream file(TACHO_TEST_DATA "/gpu" + std::to_string(gpu) + ".image.zst", std::ios::binary);
    const std::string packed{std::istreambuf_iterator<char>(file), {}};
    const unsigned long long size = ZSTD_getFrameContentSize(packed.data(), packed.size());
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > 1u << 20) return {};
    std::string image(static_cast<size_t>(size), '\0');
    return ZSTD_decompress(image.data(), image.size(), packed.data(), packed.size()) == image.size() ? image
                                                                                                     : std::string();
  }
  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder / name, std::ios::binary) << bytes;
  }
  static MeasuredLaunch launch(uint32_t process, uint32_t image, uint32_t range, int gpu = 0) {
    MeasuredLaunch made;
    made.process = process;
    made.dispatch.gpu = gpu;
    made.image = image;
    made.range = range;
    made.measured = true;
    return made;
  }
  fs::path folder;
  std::unique_ptr<Host> host;
  const std::vector<std::string> metrics = {"smsp__inst_executed.sum"};
};

TEST_F(NvidiaImages, OfTwoGpusInOneProcessHaveValues) {
  put("0.0.0.image", recorded(0));
  put("0.0.1.image", recorded(1));  // each numbers its own
  put("0.1.0.image", recorded(0));
  put("1.0.0.image", recorded(1));  // another process may call another GPU its first
  Evaluator evaluator(*host, metrics, folder.string());
  const Status taken = evaluator.take();
  ASSERT_TRUE(taken) << taken.error().message;
  for (const MeasuredLaunch& each :
       {launch(0, 0, 0), launch(0, 0, 1), launch(0, 0, 0, 1), launch(0, 0, 1, 1), launch(0, 1, 1), launch(1, 0, 0)}) {
    const std::vector<double>* const values = evaluator.values(each);
    ASSERT_NE(values, nullptr) << each.process << "." << each.image;
    EXPECT_EQ((*values)[0], 6144) << each.process << "." << each.image << "." << each.range;
  }
  EXPECT_EQ(evaluator.values(launch(0, 0, 2)), nullptr);
  EXPECT_EQ(evaluator.values(launch(0, 1, 0, 1)), nullptr);
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(NvidiaImages, AreKeptWhereTheNextRunGoesOnWithThem) {
  put("0.0.0.image", recorded(0));
  Evaluator evaluator(*host, metrics, folder.string());
  ASSERT_TRUE(evaluator.take(true));
  EXPECT_NE(evaluator.values(launch(0, 0, 1)), nullptr);
  EXPECT_TRUE(fs::exists(folder / "0.0.0.image"));
}

TEST_F(NvidiaImages, OtherFilesAreLeftAlone) {
  for (const char* name :
       {"0.0.image", "0.0.0.0.image", "a.0.0.image", "0..0.image", ".0.0.image", "0.0.0x.image", "0.0.0.image.part"})
    put(name, recorded(0));
  Evaluator evaluator(*host, metrics, folder.string());
  ASSERT_TRUE(evaluator.take());
  EXPECT_EQ(evaluator.values(launch(0, 0, 0)), nullptr);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 7);
}

TEST_F(NvidiaImages, FilesThatAreNoneHaveNoValues) {
  put("0.0.0.image", std::string(40000, '\0'));
  put("0.1.0.image", "");
  Evaluator evaluator(*host, metrics, folder.string());
  ASSERT_TRUE(evaluator.take());
  EXPECT_EQ(evaluator.values(launch(0, 0, 0)), nullptr);
  EXPECT_EQ(evaluator.values(launch(0, 1, 0)), nullptr);
}

}  // namespace
}  // namespace tacho::counter::nvidia
