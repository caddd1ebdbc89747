// States of a recording that grows, without a browser: the contents of each, which names keep their numbers, and
// refused requests.
#include "view/live.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "support/folder.h"
#include "support/trace_maker.h"

namespace tacho::view {
namespace {

namespace row = event::row;

class Live : public testing::Test {
 protected:
  void SetUp() override { thread_ = made_.thread_track(made_.process(7), 7); }

  // 100 calls of a function; earlier ones stay.
  void call(const std::string& name) {
    const int64_t function = made_.function(name, event::Domain::kHipRuntime);
    for (int i = 0; i < 100; ++i) made_.call(thread_, next_ += 1000, 500, function);
    ASSERT_TRUE(writer().flush());
  }
  static report::HttpResponse ask(LiveDocument& live, const std::string& path, const std::string& generation = {}) {
    report::HttpRequest request;
    request.method = "GET";
    request.path = path;
    if (!generation.empty()) request.query["generation"] = generation;
    request.query["ids"] = "1,2";
    return live.answer(request);
  }
  // Waits for a state whose document contains `text`.
  static std::string wait_for(LiveDocument& live, const std::string& text) {
    for (int i = 0; i < 600; ++i) {
      std::string body = ask(live, "/api/document").body;
      if (body.find(text) != std::string::npos) return body;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return "no state with " + text;
  }

  trace::TraceWriter& writer() { return made_.writer(); }

  test::Folder folder_;
  test::TraceMaker made_{folder_ / "run.tacho"};
  int64_t thread_ = 0, next_ = 1'000'000;
};

TEST_F(Live, GrowsStateByState) {
  LiveDocument live(writer().temporary_path(), folder_ / "run.tacho");
  EXPECT_NE(ask(live, "/api/document").body.find(R"("runs": [])"), std::string::npos);
  EXPECT_EQ(ask(live, "/api/overview").status, 404);
  call("second in the alphabet");
  const std::string first = wait_for(live, R"("events":100)");
  EXPECT_NE(first.find(R"("live":true,"generation":1,"naming":0)"), std::string::npos) << first;
  EXPECT_NE(first.find(R"("name":"run.tacho")"), std::string::npos);
  const std::string names = ask(live, "/api/names").body;
  EXPECT_NE(names.find("second in the alphabet"), std::string::npos);

  call("a later name");
  const std::string second = wait_for(live, R"("events":200)");
  EXPECT_NE(second.find(R"("generation":2,"naming":0)"), std::string::npos) << second;
  // The number keeps its meaning, and the state before is still there to be asked.
  EXPECT_EQ(ask(live, "/api/names", "1").body, names);
  EXPECT_EQ(ask(live, "/api/names", "2").body.find("second in the alphabet"), names.find("second in the alphabet"));
  EXPECT_EQ(ask(live, "/api/overview", "3").status, 409);
  EXPECT_EQ(ask(live, "/api/overview", "first").status, 400);

  ASSERT_TRUE(writer().finish());
  auto trace = trace::Trace::open(folder_ / "run.tacho");
  ASSERT_TRUE(trace);
  live.finished(*trace, nullptr);
  const std::string last = ask(live, "/api/document").body;
  EXPECT_NE(last.find(R"("live":false,"generation":3)"), std::string::npos) << last;
  EXPECT_NE(last.find(R"("events":200)"), std::string::npos);
}

TEST_F(Live, NumbersOfNamesThatMeanSomethingElseAreTold) {
  call("one");
  std::filesystem::copy_file(writer().temporary_path(), folder_ / "early");
  auto early = trace::Trace::open(folder_ / "early");
  ASSERT_TRUE(early);
  const SliceNames before(**early);
  call("two");
  auto later = trace::Trace::open(writer().temporary_path());
  ASSERT_TRUE(later);
  const SliceNames after(**later, &before);
  EXPECT_TRUE(after.kept());
  EXPECT_EQ(after.text(1), "one");
  EXPECT_EQ(after.text(2), "two");

  auto other = trace::TraceWriter::create_temporary();
  ASSERT_TRUE(other);
  (*other)->dimension(row::Function{.name = (*other)->string("three"), .domain = event::Domain::kHipRuntime});
  (*other)->add(row::Api{.track = 0, .start = 1, .duration = 1, .dim = 1});
  auto another = (*other)->finish_and_open("other.tacho");
  ASSERT_TRUE(another);
  EXPECT_FALSE(SliceNames(**another, &before).kept());
}

TEST_F(Live, ARecordingThatIsGoneShowsNothing) {
  LiveDocument live(folder_ / "none", folder_ / "run.tacho");
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_NE(ask(live, "/api/document").body.find(R"("runs": [])"), std::string::npos);
}

}  // namespace
}  // namespace tacho::view
