// SQL's rocpd tables hold the counter values that an exported rocpd file holds: of several passes those of the first.
#include <gtest/gtest.h>

#include "query/sql/session.h"
#include "reference.h"
#include "support/trace_maker.h"

namespace tacho::query {
namespace {

TEST(CounterPassesInSql, TheFirstCounts) {
  test::TraceMaker made;
  const int64_t process = made.process(77);
  const int64_t queue = made.queue_track(process, made.device("G", event::DeviceKind::kGpu, "gfx90a"), 2);
  for (int64_t dispatch = 0; dispatch < 2; ++dispatch)
    made.dispatch(queue, 100 * (dispatch + 1), 30, made.kernel("k", 2048, 128, 12), 4 + dispatch, dispatch);
  const int64_t hits = made.counter("TCC_HIT"), waves = made.counter("SQ_WAVES");
  for (const int64_t pass : {0, 1})
    for (const int64_t instance : {0, 1})
      made.counter_value(queue, 100, 0, hits, instance, static_cast<double>(3 + instance) * (pass == 0 ? 1 : 10), pass);
  // The second dispatch has the counter in its second pass only.
  made.counter_value(queue, 200, 1, hits, 0, 500, 1);
  made.counter_value(queue, 200, 1, waves, 0, 32, 0);
  auto session = Session::over(made.open(), "rocpd");
  ASSERT_TRUE(session) << session.error().message;
  const auto ask = [&](const std::string& sql) {
    const Answer answer = answer_of(**session, sql);
    EXPECT_EQ(answer.error, "") << sql;
    return answer.rows;
  };
  EXPECT_EQ(ask("SELECT count(*), sum(value) FROM rocpd_pmc_event"), (std::vector<std::string>{"4 | 539.0"}));
  EXPECT_EQ(ask("SELECT pmc_id, sum(value) FROM rocpd_pmc_event GROUP BY pmc_id ORDER BY pmc_id"),
            (std::vector<std::string>{"1 | 507.0", "2 | 32.0"}));
  EXPECT_EQ(ask("SELECT value FROM rocpd_pmc_event WHERE value BETWEEN 5 AND 100"), (std::vector<std::string>{"32.0"}));
}

}  // namespace
}  // namespace tacho::query
