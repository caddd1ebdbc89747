// Writers and drainer in one process, so that ThreadSanitizer sees both sides of the pool: eight threads write records
// and definitions while the drainer runs and other threads come and go.
#include <thread>

#include "tape/pool_run.h"
#include "tape/writer.h"

namespace tacho::test {
namespace {

TEST(Threads, EightWritersAndTheDrainer) {
  PoolRun run({.initial_bytes = 8 << 20, .max_bytes = 32 << 20});
  // The drainer's own mapping: both sides at the same addresses, or the sanitizer could not relate them.
  ASSERT_TRUE(tape::writer_internal::attach_mapped(
      &run.pool().header(),
      run.pool().header().data_offset + static_cast<size_t>(run.pool().max_blocks()) * tape::kBlockSize));
  constexpr int kThreads = 8;
  constexpr uint64_t kRecords = 20000;
  std::atomic<int> running{kThreads};
  std::atomic<uint64_t> refused{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([&, number] {
      for (uint64_t i = 0; i < kRecords; ++i) {
        auto* const record = tape::begin<event::ApiRecord>(event::RecordKind::kApi, event::Table::kApi, 0, 0);
        if (record == nullptr) {
          ++refused;
        } else {
          record->start = i;
          record->end = i + 1;
          record->correlation = tape::next_correlation();
          tape::commit();
        }
        if (i % 100 == 0) {
          // The same texts from all threads: one number each.
          const std::string text = "text " + std::to_string(i);
          const uint32_t known = tape::intern(text);
          EXPECT_NE(known, 0u);
          EXPECT_EQ(tape::intern(text), known);
          usleep(50);
        }
        if (i % 5000 == 0) tape::flush_thread();
        if (i % 4000 == 0)
          std::thread([&] {
            auto* const other = tape::begin<event::ApiRecord>(event::RecordKind::kApi, event::Table::kApi, 0, 0);
            if (other == nullptr) {
              ++refused;
              return;
            }
            other->start = other->end = 0;
            other->correlation = tape::next_correlation();
            tape::commit();
            tape::flush_thread();
          }).join();
        if (i % 500 == 0) {
          std::byte* const shared = tape::reserve_shared(64, event::Table::kApi);
          if (shared != nullptr) {
            auto* const api = reinterpret_cast<event::ApiRecord*>(shared);
            api->start = api->end = 7;
            api->correlation = 1;
            tape::publish_shared(shared, {event::RecordKind::kApi, 0, 64, 0});
          }
        }
      }
      tape::define_property(event::Table::kProcess, 0, "thread", std::to_string(number));
      --running;
    });
  while (running > 0) {
    run.drain(false);
    usleep(500);
  }
  for (std::thread& thread : threads) thread.join();
  run.drain(true);
  EXPECT_EQ(refused.load(), run.dropped());
  EXPECT_EQ(run.rows().count(event::RecordKind::kApi) + refused,
            kThreads * (kRecords + kRecords / 4000 + kRecords / 500));
  EXPECT_EQ(run.rows().count(event::RecordKind::kProperty), static_cast<size_t>(kThreads));
  size_t texts = 0;
  for (const auto& [key, text] : run.rows().strings) texts += text.rfind("text ", 0) == 0;
  EXPECT_EQ(texts, kRecords / 100);
  std::map<uint64_t, int> correlations;
  for (const Row* row : run.rows().of(event::RecordKind::kApi))
    if (row->id != 1) {
      ++correlations[row->id];
    }
  for (const auto& [id, times] : correlations) EXPECT_EQ(times, 1) << id;
  std::map<uint32_t, uint64_t> last;  // per thread in order
  for (const Row* row : run.rows().of(event::RecordKind::kApi)) {
    if (row->id == 1) continue;
    EXPECT_GT(row->id, last[row->thread]);
    last[row->thread] = row->id;
  }
}

}  // namespace
}  // namespace tacho::test
