// Traces of PyTorch's operators as --torch-trace and torch's emitter write them, made by tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "trace/rows.h"

namespace tacho::analysis {

namespace row = event::row;

/// A trace of one Python process with one thread and one queue, to which tests add ranges, launches and graphs.
class Recorded {
 public:
  Recorded() : writer_(trace::must(trace::TraceWriter::create(folder_ / "t.tacho", {}))) {
    process_ =
        writer_->dimension(row::Process{.pid = 1, .parent_pid = 0, .start = 0, .name = writer_->string("python3")});
    main_ = thread(1);
    queue_ = writer_->dimension(row::Track{.kind = event::TrackKind::kQueue, .process = process_, .native = 7});
    launch_ = writer_->dimension(row::Function{.name = writer_->string("cuLaunchKernel")});
    kernel_ = writer_->dimension(row::Kernel{.name = writer_->string("k")});
  }
  int64_t thread(int64_t tid) {
    const int64_t of = writer_->dimension(row::Thread{.process = process_, .tid = tid});
    return writer_->dimension(
        row::Track{.kind = event::TrackKind::kThread, .process = process_, .thread = of, .native = tid});
  }
  int64_t main() const { return main_; }
  void range(int64_t track, int64_t start, int64_t duration, std::string_view name, std::string_view domain = "",
             std::string_view category = "", int64_t sequence = -1) {
    const int64_t label = writer_->dimension(
        row::Label{.name = writer_->string(name),
                   .kind = event::MarkerKind::kPushPop,
                   .domain = domain.empty() ? 0 : writer_->string(domain),
                   .category = category.empty() ? 0 : writer_->string(category),
                   .payload = sequence >= 0 ? event::PayloadKind::kInteger : event::PayloadKind::kNone});
    writer_->add(row::Marker{
        .track = track, .start = start, .duration = duration, .dim = label, .payload = sequence >= 0 ? sequence : 0});
  }
  // An operator of torch.profiler's files; without `shapes` those of its inputs were not recorded.
  void profiled(int64_t track, int64_t start, int64_t duration, std::string_view name, std::string_view shapes = "") {
    const int64_t function =
        writer_->dimension(row::Function{.name = writer_->string(name), .domain = event::Domain::kOperator});
    const int64_t inputs = shapes.empty() ? 0 : writer_->dimension(row::OperatorInput{.dims = writer_->string(shapes)});
    writer_->add(row::Api{.track = track, .start = start, .duration = duration, .dim = function, .inputs = inputs});
  }
  void kernel(int64_t track, int64_t at, int64_t duration) {
    call(track, at);
    writer_->add(row::Dispatch{.track = queue_,
                               .start = at + 5,
                               .duration = duration,
                               .dim = kernel_,
                               .correlation = correlation_,
                               .queued_ahead = 0,
                               .submit_ahead = 0,
                               .ordinal = correlation_});
  }
  void mark(int64_t track, int64_t at, std::string_view name, int64_t number) {
    const int64_t label = writer_->dimension(row::Label{.name = writer_->string(name),
                                                        .kind = event::MarkerKind::kMark,
                                                        .domain = writer_->string("torch"),
                                                        .payload = event::PayloadKind::kInteger});
    writer_->add(row::Marker{.track = track, .start = at, .duration = 0, .dim = label, .payload = number});
  }
  // One launch of a graph: (node, duration) of its kernels.
  void kernels(int64_t track, int64_t at, const std::vector<std::pair<int64_t, int64_t>>& nodes) {
    call(track, at);
    int64_t start = at + 5;
    for (const auto& [node, duration] : nodes) {
      writer_->add(row::Dispatch{.track = queue_,
                                 .start = start,
                                 .duration = duration,
                                 .dim = kernel_,
                                 .correlation = correlation_,
                                 .queued_ahead = 0,
                                 .submit_ahead = 0,
                                 .ordinal = correlation_,
                                 .graph_node = node});
      start += duration;
    }
  }
  // From here on kernels are those of a graph, which a launch as one span would be named.
  void of_graph(int64_t graph, std::string_view title) {
    kernel_ = writer_->dimension(row::Kernel{.name = writer_->string("k"), .graph = graph});
    writer_->property(event::Table::kProcess, process_, fmt::format("cuda.graph.{}", graph), title);
  }
  // One launch of a graph as one span.
  void span(int64_t track, int64_t at, int64_t graph, std::string_view title, int64_t duration) {
    call(track, at);
    writer_->add(
        row::Dispatch{.track = queue_,
                      .start = at + 5,
                      .duration = duration,
                      .dim = writer_->dimension(row::Kernel{
                          .name = writer_->string(title), .kind = event::DispatchKind::kGraph, .graph = graph}),
                      .correlation = correlation_});
  }
  std::string file() const { return folder_ / "t.tacho"; }
  std::shared_ptr<const trace::Trace> open() {
    EXPECT_TRUE(writer_->finish());
    return trace::must(trace::Trace::open(file()));
  }

 private:
  // The call that launches the next work.
  void call(int64_t track, int64_t at) {
    writer_->add(row::Api{
        .track = track, .start = at, .duration = 2, .dim = launch_, .correlation = ++correlation_, .result = 0});
  }

  trace::Folder folder_;
  std::unique_ptr<trace::TraceWriter> writer_;
  int64_t process_ = 0, main_ = 0, queue_ = 0, launch_ = 0, kernel_ = 0, correlation_ = 0;
};

}  // namespace tacho::analysis
