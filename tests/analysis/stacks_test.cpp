// Trees of call stacks: what stands above a kernel, and that device time adds up.
#include "analysis/stacks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/format.h"
#include "trace/rows.h"

namespace tacho::analysis {
namespace {

using event::Table;
namespace row = event::row;
using trace::Folder;
using trace::must;
using trace::TraceWriter;

// A thread that launches once a millisecond inside of ranges, as torch.autograd.profiler.emit_nvtx makes
// them.
TEST(StackTree, ranges_that_differ_by_their_numbers_only_are_one) {
  const Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho", {}));
  const int64_t process =
      writer->dimension(row::Process{.pid = 1, .parent_pid = 0, .start = 0, .name = writer->string("p")});
  const int64_t thread = writer->dimension(row::Thread{.process = process, .tid = 1});
  const int64_t host = writer->dimension(
      row::Track{.kind = event::TrackKind::kThread, .process = process, .thread = thread, .native = 1});
  const int64_t queue =
      writer->dimension(row::Track{.kind = event::TrackKind::kQueue, .process = process, .native = 7});
  const int64_t launch = writer->dimension(row::Function{.name = writer->string("cuLaunchKernel")});
  const int64_t kernel = writer->dimension(row::Kernel{.name = writer->string("k")});
  int64_t whole = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t at = 1'000'000 * (i + 1);
    const std::string name = i % 2 == 0 ? fmt::format("aten::mm, seq = {}, op_id = {}", i, 3 * i)
                                        : fmt::format("aten::relu, op_id = {}, sizes = [[{}]]", i, i);
    const int64_t label =
        writer->dimension(row::Label{.name = writer->string(name), .kind = event::MarkerKind::kPushPop});
    writer->add(row::Marker{.track = host, .start = at, .duration = 500'000, .dim = label});
    writer->add(row::Api{.track = host,
                         .start = at + 1000,
                         .duration = 2000,
                         .dim = launch,
                         .correlation = i + 1,
                         .result = 0});
    writer->add(row::Dispatch{.track = queue,
                              .start = at + 5000,
                              .duration = 100 + i,
                              .dim = kernel,
                              .correlation = i + 1,
                              .queued_ahead = 0,
                              .submit_ahead = 0,
                              .ordinal = i});
    whole += 100 + i;
  }
  const StackTree tree = must(stack_tree(*must(writer->finish_and_open())));
  EXPECT_EQ(tree.gpu_ns, whole);
  int64_t sum = 0;
  std::vector<std::string> markers;
  for (const StackNode& node : tree.nodes) {
    sum += node.gpu_ns;
    if (tree.frames[node.frame].part == StackPart::kMarker) markers.push_back(tree.frames[node.frame].name);
  }
  EXPECT_EQ(sum, whole);
  EXPECT_EQ(markers, (std::vector<std::string>{"aten::mm", "aten::relu"}));
}

}  // namespace
}  // namespace tacho::analysis
