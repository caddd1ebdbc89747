// Trees of stacks made small enough to be sent (stacks.h: bound_trees).
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "analysis/stacks/frame_index.h"
#include "analysis/stacks/stacks.h"

namespace tacho::analysis {
namespace {

std::string_view file_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Equal for frames that a reader takes for one: a cache has one kernel under many paths.
FrameIdentity shown_identity(const StackFrame& frame) {
  const std::string_view file = frame.file.empty() ? std::string_view(frame.module) : frame.file;
  return {static_cast<uint8_t>(frame.part),
          frame.name,
          frame.part == StackPart::kPython ? file : file_name(file),
          {},
          frame.line};
}

// The nodes of all trees, by what their frames are.
struct United {
  std::vector<uint32_t> parent = {0}, depth = {0};
  std::vector<std::vector<uint32_t>> of;  // by tree and node
};

United unite(std::span<const StackTree> trees) {
  United united;
  std::vector<const StackFrame*> distinct;
  NumberSet numbers;
  std::vector<uint32_t> frame = {0};  // by node
  NumberSet child_of;
  for (const StackTree& tree : trees) {
    std::vector<uint32_t> number;
    for (const StackFrame& frame : tree.frames) {
      const FrameIdentity sought = shown_identity(frame);
      const auto next = static_cast<uint32_t>(distinct.size());
      const uint32_t known = numbers.find_or_add(
          sought.hash(), next, [&](uint32_t at) { return shown_identity(*distinct[at]).hash(); },
          [&](uint32_t at) { return shown_identity(*distinct[at]) == sought; });
      if (known == NumberSet::kNone) distinct.push_back(&frame);
      number.push_back(known == NumberSet::kNone ? next : known);
    }
    auto& of = united.of.emplace_back(tree.nodes.size());
    for (size_t i = 1; i < tree.nodes.size(); ++i) {
      const uint32_t parent = of[tree.nodes[i].parent];
      const uint32_t what = number[tree.nodes[i].frame];
      const auto next = static_cast<uint32_t>(united.parent.size());
      const uint32_t known = child_of.find_or_add(
          hash_of_pair(parent, what), next, [&](uint32_t at) { return hash_of_pair(united.parent[at], frame[at]); },
          [&](uint32_t at) { return united.parent[at] == parent && frame[at] == what; });
      if (known == NumberSet::kNone) {
        united.parent.push_back(parent);
        frame.push_back(what);
        united.depth.push_back(united.depth[parent] + 1);
      }
      of[i] = known == NumberSet::kNone ? next : known;
    }
  }
  return united;
}

// By node: the larger of its shares of host and device time, with what is below it, in any tree.
std::vector<double> largest_shares(std::span<const StackTree> trees, const United& united) {
  std::vector<double> share(united.parent.size());
  for (size_t t = 0; t < trees.size(); ++t) {
    std::vector<int64_t> host(united.parent.size()), gpu(united.parent.size());
    for (size_t i = 0; i < trees[t].nodes.size(); ++i) {
      host[united.of[t][i]] += trees[t].nodes[i].host_ns;
      gpu[united.of[t][i]] += trees[t].nodes[i].gpu_ns;
    }
    for (size_t i = united.parent.size(); i-- > 1;) {
      host[united.parent[i]] += host[i];
      gpu[united.parent[i]] += gpu[i];
    }
    for (size_t i = 0; i < share.size(); ++i)
      for (const auto* sums : {&host, &gpu})
        if (sums->front() > 0)
          share[i] = std::max(share[i], static_cast<double>((*sums)[i]) / static_cast<double>(sums->front()));
  }
  return share;
}

}  // namespace

FoldedFrames bound_trees(std::span<StackTree> trees, size_t most, size_t most_depth) {
  FoldedFrames folded;
  const United united = unite(trees);
  const size_t count = united.parent.size();
  folded.depth = *std::max_element(united.depth.begin(), united.depth.end());
  if (count <= most && folded.depth <= most_depth) return folded;
  const std::vector<double> share = largest_shares(trees, united);
  // A parent has at least the share of its child and comes first: whoever stays has its parents.
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return share[a] > share[b]; });
  std::vector<bool> kept(count);
  for (size_t i = 0, left = most; i < count && left > 0; ++i)
    if (united.depth[order[i]] <= most_depth) {
      kept[order[i]] = true;
      --left;
    }
  kept[0] = true;

  for (size_t t = 0; t < trees.size(); ++t) {
    StackTree& tree = trees[t];
    std::deque<StackFrame> frames = {tree.frames.front()};
    std::deque<StackNode> nodes = {tree.nodes.front()};
    std::vector<uint32_t> frame_of(tree.frames.size(), 0), place(tree.nodes.size(), 0), of_united(count, 0);
    std::unordered_map<uint32_t, uint32_t> rest;  // node -> what was folded below it
    uint32_t rest_frame = 0;
    std::vector<bool> away(tree.nodes.size());
    for (size_t i = 1; i < tree.nodes.size(); ++i) {
      const StackNode& node = tree.nodes[i];
      const uint32_t number = united.of[t][i];
      if (kept[number]) {
        if (of_united[number] == 0) {
          if (frame_of[node.frame] == 0) {
            frame_of[node.frame] = static_cast<uint32_t>(frames.size());
            frames.push_back(tree.frames[node.frame]);
          }
          of_united[number] = static_cast<uint32_t>(nodes.size());
          nodes.push_back({place[node.parent], frame_of[node.frame], 0, 0, 0, 0});
        }
        place[i] = of_united[number];
      } else {
        away[i] = true;
        ++folded.nodes;
        if (away[node.parent]) {
          place[i] = place[node.parent];
        } else {
          const auto [at, fresh] = rest.try_emplace(place[node.parent], static_cast<uint32_t>(nodes.size()));
          if (fresh) {
            if (rest_frame == 0) {
              rest_frame = static_cast<uint32_t>(frames.size());
              frames.push_back({StackPart::kFolded, "[smaller frames]", "", 0, "", false});
            }
            nodes.push_back({place[node.parent], rest_frame, 0, 0, 0, 0});
          }
          place[i] = at->second;
        }
        folded.host_ns += node.host_ns;
        folded.gpu_ns += node.gpu_ns;
      }
      StackNode& to = nodes[place[i]];
      to.host_ns += node.host_ns;
      to.samples += node.samples;
      to.gpu_ns += node.gpu_ns;
      to.launches += node.launches;
    }
    tree.frames = std::move(frames);
    tree.nodes = std::move(nodes);
  }
  return folded;
}

}  // namespace tacho::analysis
