// The page's details of one row: the other half of a message, the counters of a kernel, the stack of its launch.
#include <gtest/gtest.h>

#include <bit>

#include "trace/write/writer.h"
#include "view/run.h"

namespace tacho::view {
namespace {

using event::kUnknown;
using event::MessageKind;
using event::Table;
namespace row = event::row;

class Details : public ::testing::Test {
 protected:
  Details() : made_(trace::TraceWriter::create_temporary()), out_(**made_) {
    for (int64_t rank = 0; rank < 2; ++rank) {
      process_[rank] = out_.dimension(row::Process{.pid = 100 + rank, .name = out_.string("app"), .rank = rank});
      const int64_t thread = out_.dimension(row::Thread{.process = process_[rank], .tid = 100 + rank});
      thread_[rank] = out_.dimension(
          row::Track{.kind = event::TrackKind::kThread, .process = process_[rank], .thread = thread, .native = rank});
    }
    world_ = out_.dimension(row::Communicator{.identity = 7, .name = out_.string("MPI_COMM_WORLD"), .size = 2});
  }

  void message(int rank, MessageKind kind, int64_t start, int64_t tag, int64_t ahead = 0, int64_t sequence = kUnknown) {
    const bool all = kind == MessageKind::kCollective;
    out_.add(row::Message{.track = thread_[rank],
                          .start = kBase + start,
                          .duration = 10,
                          .dim = world_,
                          .kind = kind,
                          .function = out_.string(all ? "MPI_Allreduce" : "MPI_Wait"),
                          .sent = 8,
                          .received = 8,
                          .peer = all ? kUnknown : 1 - rank,
                          .tag = tag,
                          .sequence = sequence,
                          .begun_ahead = ahead});
  }

  view::Run& run() {
    if (!run_) {
      auto opened = (*made_)->finish_and_open();
      EXPECT_TRUE(opened) << opened.error().message;
      trace_ = *opened;
      run_ = std::make_unique<view::Run>(0, "a.tacho", trace_);
      EXPECT_TRUE(run_->wait());
    }
    return *run_;
  }
  std::string of(Table table, int64_t number) {
    const auto answer = run().slice(row_id(table, number));
    return answer ? *answer : answer.error().message;
  }
  // The row of a table that starts then.
  int64_t at(Table table, int64_t start) {
    run();
    std::vector<int64_t> starts;
    int64_t number = 0;
    for (size_t chunk = 0; chunk < trace_->chunks(table).size(); ++chunk) {
      EXPECT_TRUE(trace_->decode(table, chunk, event::column::Fact::start, starts));
      for (const int64_t each : starts) {
        if (each == kBase + start) return number;
        ++number;
      }
    }
    ADD_FAILURE() << "no row starts at " << start;
    return -1;
  }
  std::string row_text(Table table, int64_t start) {
    return fmt::format("\"row\":\"{}\"", row_id(table, at(table, start)));
  }

  static constexpr int64_t kBase = 1'000'000'000;
  Result<std::unique_ptr<trace::TraceWriter>> made_;
  trace::TraceWriter& out_;
  int64_t process_[2], thread_[2], world_;
  std::shared_ptr<const trace::Trace> trace_;
  std::unique_ptr<view::Run> run_;
};

TEST_F(Details, AMessageKnowsItsOtherHalf) {
  // Two of one tag: the second receive to end was the first to begin. One of another tag between them, and one
  // unmatched.
  message(0, MessageKind::kSend, 100, 5);
  message(0, MessageKind::kSend, 200, 6);
  message(0, MessageKind::kSend, 300, 5);
  message(0, MessageKind::kSend, 400, 5);
  message(1, MessageKind::kReceive, 150, 5, 20);
  message(1, MessageKind::kReceive, 250, 6);
  message(1, MessageKind::kReceive, 350, 5, 300);  // begun at 50: before the one at 150
  const std::string first = of(Table::kMessage, at(Table::kMessage, 100));
  EXPECT_NE(first.find(row_text(Table::kMessage, 350)), std::string::npos) << first;
  EXPECT_NE(first.find("\"how\":\"received by\""), std::string::npos) << first;
  EXPECT_NE(first.find("\"name\":\"send to rank 1\""), std::string::npos) << first;
  const std::string late = of(Table::kMessage, at(Table::kMessage, 150));
  EXPECT_NE(late.find(row_text(Table::kMessage, 300)), std::string::npos) << late;
  EXPECT_NE(late.find("\"how\":\"sent by\""), std::string::npos) << late;
  EXPECT_NE(of(Table::kMessage, at(Table::kMessage, 250)).find(row_text(Table::kMessage, 200)), std::string::npos);
  EXPECT_EQ(of(Table::kMessage, at(Table::kMessage, 400)).find("received by"), std::string::npos);
}

TEST_F(Details, BytesHaveTheirUnit) {
  const int64_t copy = out_.dimension(row::CopyShape{.direction = event::CopyDirection::kHostToDevice});
  for (const auto& [start, bytes] : {std::pair<int64_t, int64_t>{10, 512}, {20, 231'424}, {30, kUnknown}})
    out_.add(row::Copy{.track = thread_[0], .start = kBase + start, .duration = 5, .dim = copy, .bytes = bytes});
  EXPECT_NE(of(Table::kCopy, at(Table::kCopy, 10)).find("[\"bytes\",\"512 bytes\"]"), std::string::npos);
  EXPECT_NE(of(Table::kCopy, at(Table::kCopy, 20)).find("[\"bytes\",\"226.00 KiB (231424 bytes)\"]"),
            std::string::npos);
  EXPECT_EQ(of(Table::kCopy, at(Table::kCopy, 30)).find("\"bytes\""), std::string::npos);
}

TEST_F(Details, ACollectiveKnowsTheOtherRanks) {
  message(0, MessageKind::kCollective, 100, kUnknown, 0, 0);
  message(1, MessageKind::kCollective, 120, kUnknown, 0, 0);
  message(0, MessageKind::kCollective, 200, kUnknown, 0, 1);
  message(1, MessageKind::kCollective, 230, kUnknown, 0, 1);
  const std::string text = of(Table::kMessage, at(Table::kMessage, 200));
  EXPECT_NE(text.find(row_text(Table::kMessage, 230)), std::string::npos) << text;
  EXPECT_EQ(text.find(row_text(Table::kMessage, 120)), std::string::npos) << text;
  EXPECT_NE(text.find("MPI_Allreduce"), std::string::npos) << text;
}

TEST_F(Details, MessagesHaveALineBelowTheirThread) {
  out_.add(
      row::Api{.track = thread_[0],
               .start = kBase + 100,
               .duration = 10,
               .dim = out_.dimension(row::Function{.name = out_.string("MPI_Send"), .domain = event::Domain::kMpi})});
  message(0, MessageKind::kSend, 100, 5);
  const auto& lines = run().tree().lines();
  const int64_t line = run().tree().line_of(Table::kMessage, thread_[0]);
  ASSERT_GE(line, 0);
  EXPECT_EQ(lines[static_cast<size_t>(line)].kind, LineKind::kMessage);
  EXPECT_EQ(lines[static_cast<size_t>(line)].parent, run().tree().line_of(Table::kApi, thread_[0]));
  EXPECT_EQ(run().index().events(static_cast<size_t>(line)), 1);
}

TEST_F(Details, CountersAndStackOfAKernel) {
  const int64_t device = out_.dimension(row::Device{.kind = event::DeviceKind::kGpu, .index = 0});
  const int64_t queue = out_.dimension(
      row::Track{.kind = event::TrackKind::kQueue, .process = process_[0], .device = device, .native = 3});
  const int64_t kernel = out_.dimension(row::Kernel{.name = out_.string("saxpy")});
  const int64_t launch =
      out_.dimension(row::Function{.name = out_.string("hipLaunchKernel"), .domain = event::Domain::kHipRuntime});
  const int64_t step = out_.dimension(row::Label{.name = out_.string("step 3"), .kind = event::MarkerKind::kPushPop});
  const int64_t waves = out_.dimension(row::Counter{.name = out_.string("SQ_WAVES")});
  const int64_t outer = out_.dimension(row::Stack{
      .frame = out_.dimension(row::Frame{.function = out_.string("main"), .file = out_.string("app.py"), .line = 9})});
  const int64_t stack =
      out_.dimension(row::Stack{.parent = outer,
                                .frame = out_.dimension(row::Frame{
                                    .function = out_.string("forward"), .file = out_.string("net.py"), .line = 42})});
  out_.add(row::Marker{.track = thread_[0], .start = kBase + 50, .duration = 900, .dim = step});
  for (int64_t i = 0; i < 2; ++i) {
    out_.add(row::Api{
        .track = thread_[0], .start = kBase + 100 + 200 * i, .duration = 20, .dim = launch, .correlation = 1 + i});
    out_.add(row::Dispatch{.track = queue,
                           .start = kBase + 130 + 200 * i,
                           .duration = 40,
                           .dim = kernel,
                           .correlation = 1 + i,
                           .ordinal = i});
    for (int64_t instance = 0; instance < 3; ++instance)
      for (int64_t pass = 0; pass < 2; ++pass)
        out_.add(row::CounterValue{.track = queue,
                                   .start = kBase + 130 + 200 * i,
                                   .ordinal = i,
                                   .dim = waves,
                                   .instance = instance,
                                   .pass = pass,
                                   .value = std::bit_cast<int64_t>(64.0 * static_cast<double>(1 + i))});
  }
  // A timer that fired during the first launch, and the stack that the launch itself took.
  out_.add(row::Sample{.track = thread_[0], .start = kBase + 101, .duration = 10000, .dim = outer, .correlation = 1});
  out_.add(row::Sample{.track = thread_[0], .start = kBase + 102, .duration = 0, .dim = stack, .correlation = 1});
  const std::string first = of(Table::kDispatch, at(Table::kDispatch, 130));
  EXPECT_NE(first.find("[\"SQ_WAVES\",\"192\"]"), std::string::npos) << first;
  EXPECT_NE(first.find("\"stack\":[\"net.py:42 forward\",\"app.py:9 main\"]"), std::string::npos) << first;
  // The second launch has no stack: the ranges that were open around it.
  const std::string second = of(Table::kDispatch, at(Table::kDispatch, 330));
  EXPECT_NE(second.find("[\"SQ_WAVES\",\"384\"]"), std::string::npos) << second;
  EXPECT_NE(second.find("\"around\":[\"step 3\"]"), std::string::npos) << second;
  EXPECT_NE(second.find("\"stack\":[]"), std::string::npos) << second;
  // On the timeline: a line below the queue, one value for each kernel.
  const int64_t line = run().tree().line_of_counter(queue, waves);
  ASSERT_GE(line, 0);
  EXPECT_EQ(run().tree().lines()[static_cast<size_t>(line)].parent, run().tree().line_of(Table::kDispatch, queue));
  const auto values = run().index().values(static_cast<size_t>(line));
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].second, 192);
  EXPECT_EQ(values[1].second, 384);
}

}  // namespace
}  // namespace tacho::view
