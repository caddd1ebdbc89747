// Nodes of CUDA graphs, as marks tell of them: each leaves one when it is made, and instantiating, which copies nodes,
// two for every copy. What was open when a node was made is what its kernels belong to, however often the graph is
// launched.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/pair_hash.h"
#include "trace/trace.h"

namespace tacho::analysis {

enum class GraphMark : uint8_t {
  kNone,    // any other marker
  kMade,    // a node; the payload is its id
  kCopy,    // a copy; the next mark of the thread says of what
  kOrigin,  // the node that was copied
};

/// The meaning of a label's markers for a node.
inline GraphMark graph_mark(const trace::Trace& trace, int64_t label) {
  namespace column = event::column;
  if (trace.text(event::Table::kLabel, label, column::Label::domain) != "torch") return GraphMark::kNone;
  const std::string_view name = trace.text(event::Table::kLabel, label, column::Label::name);
  return name == "graph node"          ? GraphMark::kMade
         : name == "graph node copy"   ? GraphMark::kCopy
         : name == "graph node origin" ? GraphMark::kOrigin
                                       : GraphMark::kNone;
}

/// Remembers an Owner for every node, through copies. A node's id is its graph's number (upper 32 bits) and its number
/// within.
///
/// The nodes of a child graph, and of a conditional node's body, are copied into a graph of their own when the graph
/// around them is instantiated, but run under other ids: those of the executable graph's own nodes continued. After its
/// own come, node by node, the nodes of all graphs inside the node, then those of the graphs inside these (seen with
/// CUPTI 13.0, driver 580; no document says so). Where ids are numbered in another way, nothing is known of such nodes.
template <typename Owner>
class GraphNodes {
 public:
  void made(int64_t process, int64_t node, const Owner& owner) { owners_.insert_or_assign({process, node}, owner); }
  /// Marks of one thread (`track`), in the order of time.
  void copy(int64_t track, int64_t node) { threads_[track].copied = node; }
  void origin(int64_t track, int64_t process, int64_t node) {
    const auto thread = threads_.find(track);
    if (thread == threads_.end()) return;
    const int64_t copied = thread->second.copied;
    note_place(process, thread->second, copied);
    if (const auto original = owners_.find({process, node}); original != owners_.end())
      owners_.insert_or_assign({process, copied}, Owner(original->second));
  }
  /// nullptr if nothing is known of the node: it was made before tracing began, or outside of everything.
  const Owner* find(int64_t process, int64_t node) {
    auto found = owners_.find({process, node});
    if (found == owners_.end() && number_inner(process, graph_of(node))) found = owners_.find({process, node});
    return found == owners_.end() ? nullptr : &found->second;
  }

 private:
  using Inside = std::vector<
      std::vector<int64_t>>;  // the graphs inside each node that has some: one, or a conditional node's bodies
  struct Graph {
    int64_t nodes = 0;  // copied into it, its own
    Inside inside;
    bool as_known = true;   // its nodes are numbered 0, 1, 2, ...
    bool numbered = false;  // the nodes of the graphs inside have their ids
  };
  struct Thread {
    int64_t copied = 0;  // the last copy
    std::vector<int64_t>
        unplaced;  // graphs that nodes were copied into and that are inside no other one so far, in ascending order
  };

  static constexpr int kDeepest = 64;  // graphs inside each other

  static int64_t graph_of(int64_t node) { return node >> 32; }

  // The graphs inside a node are made after the node's graph, and filled before the node is copied.
  void note_place(int64_t process, Thread& thread, int64_t node) {
    const int64_t number = graph_of(node);
    Graph& graph = graphs_[{process, number}];
    graph.as_known &= (node & 0xffffffff) == graph.nodes;
    ++graph.nodes;
    std::vector<int64_t>& unplaced = thread.unplaced;
    const auto inside = std::upper_bound(unplaced.begin(), unplaced.end(), number);
    if (inside != unplaced.end()) graph.inside.emplace_back(inside, unplaced.end());
    unplaced.erase(inside, unplaced.end());
    if (unplaced.empty() || unplaced.back() != number) unplaced.push_back(number);
  }

  bool number_inner(int64_t process, int64_t number) {
    const auto found = graphs_.find({process, number});
    if (found == graphs_.end() || found->second.numbered || found->second.inside.empty()) return false;
    found->second.numbered = true;
    int64_t next = number << 32 | found->second.nodes;
    return found->second.as_known && number_graphs(process, found->second.inside, next, 1);
  }

  // `next`: the next id that is free.
  bool number_graphs(int64_t process, const Inside& inside, int64_t& next, int depth) {
    if (depth > kDeepest) return false;
    for (const std::vector<int64_t>& graphs : inside) {
      for (const int64_t number : graphs) {
        const Graph& graph = graphs_[{process, number}];
        if (!graph.as_known) return false;
        for (int64_t node = number << 32, end = node + graph.nodes; node < end; ++node, ++next)
          if (const auto owner = owners_.find({process, node}); owner != owners_.end())
            owners_.insert_or_assign({process, next}, Owner(owner->second));
      }
      for (const int64_t number : graphs)
        if (!number_graphs(process, graphs_[{process, number}].inside, next, depth + 1)) return false;
    }
    return true;
  }

  std::unordered_map<std::pair<int64_t, int64_t>, Owner, PairHash> owners_;  // by (process, node)
  std::unordered_map<std::pair<int64_t, int64_t>, Graph, PairHash> graphs_;  // by (process, number)
  std::unordered_map<int64_t, Thread> threads_;                              // by track
};

}  // namespace tacho::analysis
