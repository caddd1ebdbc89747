// Operators of PyTorch: which kernels belong to them, backward passes, names of paths.
#include "analysis/operators/operators.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "analysis/recorded_operators.h"

namespace tacho::analysis {
namespace {

using trace::must;

const OperatorRow* find(const std::vector<OperatorRow>& rows, std::string_view name, OperatorPhase phase) {
  for (const OperatorRow& each : rows)
    if (each.name == name && each.phase == phase) return &each;
  return nullptr;
}

// The records of a convolution by --torch-trace and torch's emitter: the backward pass runs on a thread of its own, and
// its operator has the sequence number of the forward operator that made it.
TEST(Operators, BackwardBelongsToTheForwardOperatorOfItsSequenceNumber) {
  Recorded recorded;
  const int64_t main = recorded.main(), engine = recorded.thread(2);
  recorded.range(main, 100, 800, "nn.Module.Net.forward", "torch", "module Net @ /home/u/train.py:9");
  recorded.range(main, 110, 300, "nn.Module.Conv2d.forward", "torch", "module Net.conv @ /home/u/train.py:12");
  recorded.range(main, 120, 200, "aten::conv2d", "NVTX", "", 4);
  recorded.range(main, 130, 100, "aten::convolution", "NVTX", "", 4);
  recorded.kernel(main, 140, 30);
  recorded.range(main, 500, 100, "aten::add", "NVTX", "", 5);
  recorded.kernel(main, 510, 20);
  recorded.range(engine, 1000, 500, "autograd::engine::evaluate_function: ConvolutionBackward0", "NVTX");
  recorded.range(engine, 1010, 400, "ConvolutionBackward0", "NVTX", "", 4);
  recorded.range(engine, 1020, 100, "aten::convolution_backward", "NVTX");
  recorded.kernel(engine, 1030, 50);
  recorded.range(engine, 2000, 100, "AddBackward0", "NVTX", "", 99);
  recorded.kernel(main, 3000, 7);
  const auto trace = recorded.open();
  std::vector<std::string> paths;
  OperatorTree tree;
  OperatorVisitor visitor;
  std::vector<OperatorCall> calls;
  visitor.kernel = [&](const OperatorKernel&, const OperatorCall* call) {
    calls.push_back(call != nullptr ? *call : OperatorCall{});
  };
  tree = must(operator_tree(*trace, visitor));
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(tree.path(calls[0].node), "nn.Module.Net.forward/nn.Module.Conv2d.forward/torch.nn.functional.conv2d");
  EXPECT_EQ(tree.path(calls[0].outer), tree.path(calls[0].node));
  EXPECT_EQ(calls[0].start, 120);
  EXPECT_EQ(tree.path(calls[1].node), "nn.Module.Net.forward/aten::add");
  EXPECT_EQ(tree.path(calls[2].node),
            "nn.Module.Net.forward/nn.Module.Conv2d.forward/torch.nn.functional.conv2d/ConvolutionBackward0");
  EXPECT_EQ(tree.path(calls[3].node), "");
  EXPECT_EQ(tree.backward_alone, 1);

  const auto rows = operator_rows(tree, OperatorBy::kOperator);
  const auto* const conv = find(rows, "torch.nn.functional.conv2d", OperatorPhase::kForward);
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->total.ns, 30);
  EXPECT_EQ(conv->self.ns, 0);
  EXPECT_EQ(conv->host_total, 200);
  EXPECT_EQ(conv->host_self, 0);
  EXPECT_EQ(conv->calls, 1);
  EXPECT_EQ(find(rows, "aten::conv2d", OperatorPhase::kForward)->host_self, 100);
  EXPECT_EQ(find(rows, "aten::convolution", OperatorPhase::kForward)->self.ns, 30);
  const auto* const backward = find(rows, "torch.nn.functional.conv2d", OperatorPhase::kBackward);
  ASSERT_NE(backward, nullptr);
  EXPECT_EQ(backward->total.ns, 50);
  EXPECT_EQ(find(rows, "aten::convolution_backward", OperatorPhase::kBackward)->self.kernels, 1);
  const auto modules = operator_rows(tree, OperatorBy::kModule);
  EXPECT_EQ(find(modules, "Net.conv", OperatorPhase::kForward)->self.ns, 30);
  EXPECT_EQ(find(modules, "Net.conv", OperatorPhase::kBackward)->self.ns, 50);
  EXPECT_EQ(find(modules, "Net", OperatorPhase::kForward)->self.ns, 20);
  EXPECT_EQ(find(modules, "Net", OperatorPhase::kForward)->total.ns, 50);
  EXPECT_EQ(find(modules, "(no module)", OperatorPhase::kForward)->self.ns, 7);
}

// Kernels of a graph belong to the ranges that were open when their nodes were captured; instantiating copies nodes,
// and the launch may come from anywhere.
TEST(Operators, NodesOfGraphsBelongToWhatWasCaptured) {
  Recorded recorded;
  const int64_t main = recorded.main(), other = recorded.thread(5);
  recorded.range(main, 100, 100, "nn.Module.Linear.forward", "torch", "module Net.head @ /home/u/decode.py:20");
  recorded.range(main, 110, 50, "aten::addmm", "NVTX");
  recorded.mark(main, 120, "graph node", 11);
  recorded.mark(main, 170, "graph node", 12);
  recorded.mark(main, 300, "graph node copy", 51);
  recorded.mark(main, 301, "graph node origin", 11);
  recorded.mark(main, 302, "graph node copy", 52);
  recorded.mark(main, 303, "graph node origin", 12);
  recorded.mark(main, 304, "graph node copy", 53);
  recorded.mark(main, 305, "graph node origin", 9);  // made before tracing began
  recorded.range(other, 1000, 500, "Replay", "torch", "user");
  recorded.kernels(other, 1010, {{51, 30}, {52, 4}, {53, 2}});
  recorded.kernels(other, 1200, {{51, 30}});
  const auto trace = recorded.open();
  const OperatorTree tree = must(operator_tree(*trace));
  const auto rows = operator_rows(tree, OperatorBy::kOperator);
  const auto* const addmm = find(rows, "aten::addmm", OperatorPhase::kForward);
  ASSERT_NE(addmm, nullptr);
  EXPECT_EQ(addmm->self.ns, 60);
  EXPECT_EQ(addmm->self.kernels, 2);
  EXPECT_EQ(find(rows, "nn.Module.Linear.forward", OperatorPhase::kForward)->self.ns, 4);
  EXPECT_EQ(find(rows, "Replay", OperatorPhase::kForward)->self.ns, 2);
  EXPECT_EQ(tree.graph_unnamed, 1);
  EXPECT_EQ(find(operator_rows(tree, OperatorBy::kModule), "Net.head", OperatorPhase::kForward)->self.ns, 64);
}

// One operator with several shapes: rows of their own where they are asked for, also of what is around it.
TEST(Operators, ShapesOfInputsAreRowsOfTheirOwn) {
  Recorded recorded;
  const int64_t main = recorded.main();
  int64_t at = 0;
  for (const std::string_view shapes : {"[[8, 3], [3, 4]]", "[[2, 3], [3, 4]]", "[[8, 3], [3, 4]]", ""}) {
    at += 1000;
    recorded.profiled(main, at, 500, "aten::linear", shapes);
    recorded.profiled(main, at + 100, 200, "aten::mm", shapes);
    recorded.kernel(main, at + 110, shapes == "[[8, 3], [3, 4]]" ? 30 : 7);
  }
  const auto trace = recorded.open();
  const auto of = [](const std::vector<OperatorRow>& rows, std::string_view name, std::string_view shapes) {
    for (const OperatorRow& each : rows)
      if (each.name == name && each.shapes == shapes) return each;
    return OperatorRow{};
  };
  const auto together = operator_rows(must(operator_tree(*trace)), OperatorBy::kOperator);
  EXPECT_EQ(of(together, "aten::mm", "").calls, 4);
  EXPECT_EQ(of(together, "aten::mm", "").self.ns, 74);
  const OperatorTree tree = must(operator_tree(*trace, {}, nullptr, true));
  const auto rows = operator_rows(tree, OperatorBy::kOperator);
  EXPECT_EQ(of(rows, "aten::mm", "[[8, 3], [3, 4]]").calls, 2);
  EXPECT_EQ(of(rows, "aten::mm", "[[8, 3], [3, 4]]").self.ns, 60);
  EXPECT_EQ(of(rows, "aten::mm", "[[2, 3], [3, 4]]").self.ns, 7);
  EXPECT_EQ(of(rows, "aten::mm", "").calls, 1);
  EXPECT_EQ(of(rows, "aten::linear", "[[8, 3], [3, 4]]").total.ns, 60);
  EXPECT_EQ(of(rows, "aten::linear", "[[8, 3], [3, 4]]").host_self, 600);
  EXPECT_EQ(of(rows, "torch.nn.functional.linear", "[[8, 3], [3, 4]]").calls, 2);
  EXPECT_EQ(rows.size(), 9u) << "three of each of the three names";
  EXPECT_EQ(tree.shapes_together, 0);
  for (const OperatorRow& row : operator_rows(tree, OperatorBy::kModule)) EXPECT_EQ(row.shapes, "");
}

// A program whose every call has another shape: memory is bounded, and no call is lost.
TEST(Operators, TooManyShapesCountTogether) {
  Recorded recorded;
  constexpr int64_t kCalls = static_cast<int64_t>(kMostShapedNodes) + 50;
  for (int64_t i = 0; i < kCalls; ++i)
    recorded.profiled(recorded.main(), 10 * i, 5, "aten::mm", fmt::format("[[{}]]", i));
  const OperatorTree tree = must(operator_tree(*recorded.open(), {}, nullptr, true));
  EXPECT_EQ(tree.nodes.size(), kMostShapedNodes + 2);
  EXPECT_EQ(tree.shapes_together, 50);
  int64_t calls = 0, others = 0;
  for (const OperatorRow& row : operator_rows(tree, OperatorBy::kOperator)) {
    calls += row.calls;
    if (row.shapes == kOtherShapes) others += row.calls;
  }
  EXPECT_EQ(calls, kCalls);
  EXPECT_EQ(others, 50);
}

// A trace with nodes says how launches that are one span are divided: by graph, also where two have one name.
TEST(Operators, SpansOfGraphsAreDividedByNodesOfAnotherTrace) {
  constexpr const char* kTitle = "graph of 2 nodes: k x2";
  Recorded nodes, spans;
  for (Recorded* const each : {&nodes, &spans}) {
    each->range(each->main(), 100, 100, "nn.Module.Linear.forward", "torch", "module Net.head @ /home/u/decode.py:20");
    each->range(each->main(), 110, 50, "aten::addmm", "NVTX");
    each->mark(each->main(), 120, "graph node", 11);
    each->mark(each->main(), 170, "graph node", 12);
    each->range(each->main(), 300, 50, "aten::relu", "NVTX");
    each->mark(each->main(), 310, "graph node", 13);
    each->mark(each->main(), 320, "graph node", 14);
    each->range(each->main(), 1000, 9000, "Replay", "torch", "user");
  }
  nodes.of_graph(7, kTitle);
  nodes.kernels(nodes.main(), 1010, {{11, 30}, {12, 10}});
  nodes.kernels(nodes.main(), 1200, {{11, 30}, {12, 10}});
  nodes.of_graph(8, kTitle);
  nodes.kernels(nodes.main(), 1400, {{13, 5}, {14, 5}});
  spans.span(spans.main(), 1010, 21, kTitle, 80);
  spans.span(spans.main(), 1200, 23, kTitle, 20);
  spans.span(spans.main(), 1400, 24, "graph of 9 nodes", 3);
  const auto of_nodes = nodes.open(), of_spans = spans.open();
  const GraphShares shares = must(graph_shares(*of_nodes));
  const OperatorTree tree = must(operator_tree(*of_spans, {}, &shares));
  const auto rows = operator_rows(tree, OperatorBy::kOperator);
  EXPECT_EQ(find(rows, "aten::addmm", OperatorPhase::kForward)->self.ns, 60);
  EXPECT_EQ(find(rows, "nn.Module.Linear.forward", OperatorPhase::kForward)->self.ns, 20);
  EXPECT_EQ(find(rows, "aten::relu", OperatorPhase::kForward)->self.ns, 20);
  EXPECT_EQ(find(rows, "aten::relu", OperatorPhase::kForward)->self.kernels, 2);
  EXPECT_EQ(find(rows, "Replay", OperatorPhase::kForward)->self.ns, 3);
  EXPECT_EQ(find(rows, "Replay", OperatorPhase::kForward)->self.launches, 3);
  EXPECT_EQ(tree.whole.ns, 103);
  EXPECT_EQ(tree.estimated.ns, 100);
  EXPECT_EQ(tree.spans_divided, 2);
  EXPECT_EQ(tree.estimated_from, 1);
  EXPECT_EQ(tree.spans_undivided, 1);
  EXPECT_FALSE(graph_shares(*of_spans).has_value());
}

// A program that replays a graph outside of all operators: the launch is the root's, the work its nodes'.
TEST(Operators, SpansThatNoOperatorLaunchedAreDividedToo) {
  constexpr const char* kTitle = "graph of 1 node: k";
  Recorded nodes, spans;
  for (Recorded* const each : {&nodes, &spans}) {
    each->range(each->main(), 100, 50, "aten::relu", "NVTX");
    each->mark(each->main(), 110, "graph node", 11);
  }
  nodes.of_graph(7, kTitle);
  nodes.kernels(nodes.main(), 1010, {{11, 30}});
  spans.span(spans.main(), 1010, 21, kTitle, 80);
  spans.span(spans.main(), 1200, 21, kTitle, 60);
  const auto of_nodes = nodes.open(), of_spans = spans.open();
  const GraphShares shares = must(graph_shares(*of_nodes));
  const OperatorTree tree = must(operator_tree(*of_spans, {}, &shares));
  const auto rows = operator_rows(tree, OperatorBy::kOperator);
  EXPECT_EQ(find(rows, "aten::relu", OperatorPhase::kForward)->self.ns, 140);
  EXPECT_EQ(find(rows, "aten::relu", OperatorPhase::kForward)->self.launches, 0);
  EXPECT_EQ(tree.nodes[0].work.launches, 2);
  EXPECT_EQ(tree.nodes[0].work.ns, 0);
  EXPECT_EQ(tree.spans_divided, 2);
  EXPECT_EQ(tree.estimated.ns, 140);
}

// Each thread has its own sequence numbers.
TEST(Operators, ASequenceNumberOfTwoThreadsIsNobodys) {
  Recorded recorded;
  const int64_t other = recorded.thread(3), engine = recorded.thread(2);
  recorded.range(recorded.main(), 100, 50, "aten::mm", "NVTX", "", 1);
  recorded.range(other, 120, 50, "aten::add", "NVTX", "", 1);
  recorded.range(engine, 300, 50, "MmBackward0", "NVTX", "", 1);
  recorded.kernel(engine, 310, 5);
  const auto trace = recorded.open();
  const OperatorTree tree = must(operator_tree(*trace));
  EXPECT_EQ(tree.backward_alone, 1);
  const auto rows = operator_rows(tree, OperatorBy::kOperator);
  EXPECT_EQ(find(rows, "aten::mm", OperatorPhase::kBackward), nullptr);
  EXPECT_EQ(find(rows, "MmBackward0", OperatorPhase::kBackward)->self.kernels, 1);
}

TEST(Operators, OtherRangesAreNoOperators) {
  Recorded recorded;
  recorded.range(recorded.main(), 100, 50, "step 1", "NVTX");
  recorded.range(recorded.main(), 110, 20, "epoch", "tacho");
  recorded.range(recorded.main(), 115, 10, "cub::DeviceScan::InclusiveScan", "CCCL");
  recorded.kernel(recorded.main(), 120, 5);
  const auto trace = recorded.open();
  const OperatorTree tree = must(operator_tree(*trace));
  EXPECT_FALSE(tree.any());
  EXPECT_EQ(tree.nodes[0].work.ns, 5);
}

}  // namespace
}  // namespace tacho::analysis
