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
using trace::Folder;
using trace::must;
using trace::TraceWriter;

// A thread that launches once a millisecond inside of ranges, as torch.autograd.profiler.emit_nvtx makes
// them.
TEST(StackTree, ranges_that_differ_by_their_numbers_only_are_one) {
  const Folder folder;
  auto writer = must(TraceWriter::create(folder / "t.tacho", {}));
  const int64_t process =
      writer->dimension(Table::kProcess, {1, 0, 0, writer->string("p"), 0, 0, event::kUnknown, 0});
  const int64_t thread = writer->dimension(Table::kThread, {process, 1, 0});
  const int64_t host = writer->dimension(
      Table::kTrack, {static_cast<int64_t>(event::TrackKind::kThread), process, thread, 0, 1, 0, 0, 0, 0});
  const int64_t queue = writer->dimension(
      Table::kTrack, {static_cast<int64_t>(event::TrackKind::kQueue), process, 0, 0, 7, 0, 0, 0, 0});
  const int64_t launch = writer->dimension(Table::kFunction, {writer->string("cuLaunchKernel"), 0});
  std::vector<int64_t> shape(event::column::Kernel::kCount, 0);
  shape[event::column::Kernel::name] = writer->string("k");
  const int64_t kernel = writer->dimension(Table::kKernel, shape);
  int64_t whole = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t at = 1'000'000 * (i + 1);
    const std::string name = i % 2 == 0 ? fmt::format("aten::mm, seq = {}, op_id = {}", i, 3 * i)
                                        : fmt::format("aten::relu, op_id = {}, sizes = [[{}]]", i, i);
    const int64_t label = writer->dimension(
        Table::kLabel,
        {writer->string(name), static_cast<int64_t>(event::MarkerKind::kPushPop), 0, 0, event::kUnknown, 0});
    writer->add(Table::kMarker, {host, at, 500'000, label, 0, 0});
    writer->add(Table::kApi, {host, at + 1000, 2000, launch, i + 1, 0});
    writer->add(Table::kDispatch, {queue, at + 5000, 100 + i, kernel, i + 1, 0, 0, i, 0});
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
