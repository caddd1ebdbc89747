// Work whose call was forgotten, since a million calls came in between: every writer that looks for calls says so.
#include <gtest/gtest.h>

#include "format/chrome_json/chrome_json.h"
#include "format/csv/csv.h"
#include "format/perfetto/perfetto.h"
#include "format/rocprofv3_json/rocprofv3_json.h"
#include "support/folder.h"
#include "support/trace_maker.h"
#include "walk/calls/call_index.h"

namespace tacho::test {
namespace {

// One kernel, which ran after as many further calls as the index remembers, and some.
std::shared_ptr<const trace::Trace> with_a_late_kernel() {
  TraceMaker made;
  const int64_t process = made.process(77), thread = made.thread_track(process, 77);
  const int64_t queue = made.queue_track(process, made.device("G", event::DeviceKind::kGpu, "gfx90a"), 2);
  const int64_t launch = made.function("hipLaunchKernel", event::Domain::kHipRuntime);
  const auto calls = static_cast<int64_t>(walk::CallIndex<char>::kMostCalls) + 64;
  for (int64_t call = 1; call <= calls; ++call) made.call(thread, call * 10, 5, launch, call);
  made.dispatch(queue, calls * 10 + 100, 30, made.kernel("k"), 1, 0);
  return made.open();
}

TEST(ForgottenCalls, AreToldByEveryWriter) {
  const auto trace = with_a_late_kernel();
  const Folder folder;
  std::vector<std::string> written;
  const auto remarks_of = [&](auto write, const char* name, bool kernel_rename) {
    std::vector<std::string> remarks;
    format::ExportOptions options;
    options.remarks = &remarks;
    options.kernel_rename = kernel_rename;
    const Status done = write(*trace, {folder / name, folder.path(), "a"}, options, written);
    EXPECT_TRUE(done) << done.error().message;
    return remarks;
  };
  const std::vector<std::string> expected = {walk::forgotten_sentence(1)};
  EXPECT_EQ(remarks_of(format::write_csv, "", false), expected);
  EXPECT_EQ(remarks_of(format::write_chrome_json, "a.json", false), expected);
  EXPECT_EQ(remarks_of(format::rocprofv3::write, "a_results.json", false), expected);
  EXPECT_EQ(remarks_of(format::write_perfetto, "a.pftrace", true), expected) << "kernels take the names of ranges";
}

}  // namespace
}  // namespace tacho::test
