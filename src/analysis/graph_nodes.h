// Nodes of CUDA graphs, as marks tell of them: each leaves one when it is made, and instantiating, which copies nodes, two for
// every copy. What was open when a node was made is what its kernels belong to, however often the graph is launched.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "analysis/pair_hash.h"
#include "trace/trace.h"

namespace tacho::analysis {

enum class GraphMark : uint8_t {
  kNone,    // any other marker
  kMade,    // a node; the payload is its id
  kCopy,    // a copy; the next mark of the thread says of what
  kOrigin,  // the node that was copied
};

/// What the markers of a label say about a node.
inline GraphMark graph_mark(const trace::Trace& trace, int64_t label) {
  namespace column = event::column;
  if (trace.text(event::Table::kLabel, label, column::Label::domain) != "torch") return GraphMark::kNone;
  const std::string_view name = trace.text(event::Table::kLabel, label, column::Label::name);
  return name == "graph node"          ? GraphMark::kMade
         : name == "graph node copy"   ? GraphMark::kCopy
         : name == "graph node origin" ? GraphMark::kOrigin
                                       : GraphMark::kNone;
}

/// Remembers an Owner for every node, through copies.
template <typename Owner>
class GraphNodes {
 public:
  void made(int64_t process, int64_t node, const Owner& owner) {
    owners_.insert_or_assign({process, node}, owner);
  }
  /// Marks of one thread (`track`), in the order of time.
  void copy(int64_t track, int64_t node) { copied_[track] = node; }
  void origin(int64_t track, int64_t process, int64_t node) {
    const auto copy = copied_.find(track);
    const auto original = owners_.find({process, node});
    if (copy == copied_.end() || original == owners_.end()) return;
    owners_.insert_or_assign({process, copy->second}, Owner(original->second));
  }
  /// nullptr if nothing is known of the node: it was made before tracing began, or outside of everything.
  const Owner* find(int64_t process, int64_t node) const {
    const auto found = owners_.find({process, node});
    return found == owners_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::pair<int64_t, int64_t>, Owner, PairHash> owners_;  // by (process, node)
  std::unordered_map<int64_t, int64_t> copied_;                              // by track: the last copy
};

}  // namespace tacho::analysis
