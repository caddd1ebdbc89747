// The kernels of a rank: which of them carry out collectives, and what the trace states about these.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ranks/match/communication.h"
#include "ranks/read/rank_run.h"
#include "trace/trace.h"
#include "walk/calls/causes.h"

namespace tacho::ranks {

class RankKernels {
 public:
  struct Collective {
    Operation operation = Operation::kUnknown;
    uint32_t communicator = 0;
    int64_t bytes = 0;        // message_bytes(); 0 = unknown
    int64_t number = -1;      // StatedCollective::number
    uint64_t identity = 0;    // StatedCollective::identity
    int64_t group_size = -1;  // as stated; -1 = unknown
  };

  /// `process`: a row; 0 = all of the trace, which must outlive this, as must `names`. Errors: damaged data.
  static Result<RankKernels> make(const trace::Trace& trace, int64_t process, Names& names);

  /// How many numbers place() gives: rows of table kernel.
  size_t size() const { return numbers_.size(); }
  /// A dispatch's `dim` as an index; 0 for a kernel that does not exist.
  size_t place(int64_t dim) const {
    return dim > 0 && dim < static_cast<int64_t>(size()) ? static_cast<size_t>(dim) : 0;
  }
  /// The first place whose kernel has the same name.
  size_t first_of_name(size_t place) const { return first_of_name_[place]; }
  /// Names::number() by place.
  const std::vector<uint64_t>& numbers() const { return numbers_; }

  /// The collective that a dispatch of the kernel at `place` carries out; nullopt for all other kernels. It is known by
  /// `arguments` (a string's row, as the reader of Kineto files writes it), by NCCL's mark about the launch, or by
  /// name.
  std::optional<Collective> collective(size_t place, int64_t arguments, int64_t process, int64_t correlation);

 private:
  RankKernels(const trace::Trace& trace, Names& names);
  Status read_marks(int64_t process);
  Collective by_arguments(int64_t arguments, size_t place);
  Collective by_marks(const std::vector<int64_t>& labels, size_t place);

  const trace::Trace* trace_;
  Names* names_;
  std::vector<uint64_t> numbers_;
  std::vector<size_t> first_of_name_;
  std::vector<bool> is_collective_;
  std::vector<Operation> operations_;  // by the kernel's name
  std::unordered_map<int64_t, std::pair<StatedCollective, uint32_t>>
      stated_;                               // by the row of `arguments`, with the communicator
  std::vector<std::vector<int64_t>> marks_;  // labels of the collectives that a launch carries out
  walk::Causes<size_t> marks_of_;            // by launch: its place in marks_
};

}  // namespace tacho::ranks
