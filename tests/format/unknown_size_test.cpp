// Copies and fills of unknown size: no format may say 0 B, or the number that represents "unknown".
#include <gtest/gtest.h>

#include "format/chrome_json/chrome_json.h"
#include "format/rocpd/rocpd.h"
#include "format/rocprofv3_json/rocprofv3_json.h"
#include "format/rpd/rpd.h"
#include "support/folder.h"
#include "support/trace_maker.h"
#include "trace/read/rows.h"

namespace tacho::test {
namespace {

using Read = Result<std::shared_ptr<const trace::Trace>> (*)(const std::string&);
using Write = Status (*)(const trace::Trace&, const format::ExportTarget&, const format::ExportOptions&,
                         std::vector<std::string>&);

std::shared_ptr<const trace::Trace> sample() {
  TraceMaker made;
  const int64_t process = made.process(77);
  const int64_t main = made.thread_track(process, 77);
  const int64_t gpu = made.device("Accelerator", event::DeviceKind::kGpu, "gfx942");
  const int64_t stream = made.queue_track(process, gpu, 3, "stream");
  made.call(main, 100, 50, made.function("hipMemcpy", event::Domain::kHipRuntime), 5);
  made.call(main, 190, 50, made.function("hipMemcpy", event::Domain::kHipRuntime), 6);
  made.copy(stream, 120, 10, event::CopyDirection::kHostToDevice, kUnknown, gpu, 5);
  made.copy(stream, 210, 10, event::CopyDirection::kHostToDevice, 4096, gpu, 6);
  made.fill(stream, 300, 7, kUnknown, gpu);
  return made.open();
}

// Writes the sample, reads it again, and gives the sizes of the copies in order of time.
std::vector<int64_t> sizes_after(Write write, Read read, const std::string& name) {
  const Folder folder;
  std::vector<std::string> written;
  const Status done = write(*sample(), {folder / name, "", ""}, {}, written);
  EXPECT_TRUE(done) << done.error().message;
  const auto opened = read(folder / name);
  EXPECT_TRUE(opened) << opened.error().message;
  if (!opened) return {};
  std::vector<int64_t> sizes;
  Status status;
  using C = event::column::Copy;
  for (const auto& copy : trace::rows<C::bytes>(**opened, status)) sizes.push_back(copy.bytes);
  return sizes;
}

TEST(UnknownSize, ComesBackUnknown) {
  const std::vector<int64_t> expected = {kUnknown, 4096};
  EXPECT_EQ(sizes_after(format::rocprofv3::write, format::rocprofv3::read, "a_results.json"), expected);
  EXPECT_EQ(sizes_after(format::rpd::write, format::rpd::read, "a.rpd"), expected);
  EXPECT_EQ(sizes_after(format::rocpd::write, format::rocpd::read, "a.db"), expected);
}

TEST(UnknownSize, IsNoNumberInChromeJson) {
  const Folder folder;
  std::vector<std::string> written;
  ASSERT_TRUE(format::write_chrome_json(*sample(), {folder / "a.json", "", ""}, {}, written));
  const std::string text = read_file(folder / "a.json");
  EXPECT_EQ(text.find("\"bytes\":"), text.rfind("\"bytes\":"));  // of one copy only
  EXPECT_EQ(text.find("9223372036854775808"), std::string::npos);
}

}  // namespace
}  // namespace tacho::test
