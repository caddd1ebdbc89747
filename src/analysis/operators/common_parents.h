// Operators that two traces carry out by different others, and the operators around them that both have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::analysis {

/// Who called whom in two traces. Names are numbers that the traces share.
class CommonParents {
 public:
  static constexpr int32_t kRoot = 0, kUnknownPath = -1;
  /// More paths than this are not kept: nothing is looked for then.
  explicit CommonParents(size_t most_paths = size_t{1} << 17) : most_(most_paths) {}

  /// A call of `name` on trace `side` (0 or 1) inside of a call with path `parent`; returns its own path.
  int32_t call(size_t side, int32_t parent, int64_t name);
  /// A call of this path is the innermost around device work.
  void works(size_t side, int32_t path);

  /// Decides, after all calls. An operator with work in one trace only is not compared by its own name where an
  /// operator around it has calls in both: the innermost such one stands for what is called more or less often in each
  /// of its calls in one trace than in the other. `may_stand` tells which may.
  void resolve(const std::function<bool(int64_t)>& may_stand);
  /// Then what is left in one trace only is compared by its kind, where both traces have that. `kind_of` gives a name's
  /// kind, "" for none; kinds become names from `first` on.
  void join_kinds(const std::function<std::string(int64_t)>& kind_of, int64_t first);

  /// The path of such a call; kUnknownPath if there was none.
  int32_t path(int32_t parent, int64_t name) const;
  bool changes() const { return !stands_.empty() || !kinds_.empty(); }
  bool too_many() const { return too_many_; }
  /// The path, itself or one around it, whose call has the work of `path`.
  int32_t owner(size_t side, int32_t path) const;
  /// The name under which a path's work is compared.
  int64_t name(int32_t owner) const;

  /// The names of innermost operators that were taken together, in each trace.
  struct Together {
    int64_t name = 0;
    std::array<std::vector<int64_t>, 2> of;
  };
  const std::vector<Together>& stands() const { return stands_; }
  const std::vector<Together>& kinds() const { return kinds_; }
  const std::vector<std::string>& kind_texts() const { return kind_texts_; }

 private:
  struct Path {
    int32_t parent;
    int64_t name;
    std::array<int64_t, 2> calls{};
    std::array<bool, 2> works{};
    std::array<int32_t, 2> owner{};
  };
  struct Work {
    int32_t path;
    size_t side;
  };
  // Work below an operator, and the outermost path of that one's name on the way to it.
  struct Below {
    Work work;
    int32_t top;
  };
  struct Candidate {
    int height = 0;
    std::vector<Below> below;
  };
  Path& at(int32_t path) { return paths_[static_cast<size_t>(path)]; }
  const Path& at(int32_t path) const { return paths_[static_cast<size_t>(path)]; }
  std::map<int64_t, Candidate> candidates(const std::vector<Work>& works) const;
  std::vector<Work> all_works() const;
  void stand(int64_t name, const Candidate& candidate, std::map<int64_t, unsigned>& sides);

  size_t most_;
  bool too_many_ = false;
  std::vector<Path> paths_ = {{0, -1}};
  std::map<std::pair<int32_t, int64_t>, int32_t> children_;
  std::vector<Together> stands_, kinds_;
  std::vector<std::string> kind_texts_;
  std::map<int64_t, int64_t> renamed_;  // name -> that of its kind
};

/// Whether a name is that of a framework operator ("aten::mm", "AddmmBackward0"), which may stand for others. Modules,
/// steps and the program's own ranges have none.
bool is_operator_name(std::string_view name);

/// The kind of matrix products, "" for other operators: "matrix product", or with dimensions of the inputs, as the
/// traces write them, "matrix product 8 x 5 x 3" (M x N x K; "" where they are no such product's).
std::string product_kind(std::string_view name, std::string_view dims = {});

}  // namespace tacho::analysis
