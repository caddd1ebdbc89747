// What each call of a framework's operator cost the device: for a comparison of two traces.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/operators/common_parents.h"
#include "base/files/sorted_file.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// A trace whose operators are read.
struct OperatorSource {
  const trace::Trace* trace = nullptr;
  bool operators = false;  ///< it has framework operators; else markers stand for them
  int64_t rows = 0;        ///< of their table: functions or labels
  std::function<int64_t(int64_t dim, int64_t inputs)> name;
  int64_t none = 0;  ///< the name of work without an operator
};

/// Device time by the innermost operator that was open around its launch.
class OperatorValues {
 public:
  OperatorValues(OperatorSource source, size_t side);
  /// Reads the trace, and tells `parents` who called whom and worked.
  Status read(CommonParents& parents);
  /// Gives (name, ns) of each call with device work, once parents.resolve() has decided whose it is. Call it once.
  Status take(const CommonParents& parents, const std::function<void(int64_t, int64_t)>& to);
  /// ns: of all device work.
  int64_t total() const { return total_; }

 private:
  struct Work {
    int64_t process, correlation, duration;
    bool operator<(const Work& other) const {
      return process != other.process ? process < other.process : correlation < other.correlation;
    }
  };
  // The call of an operator that owns what a call of the runtime launches.
  struct Owner {
    int64_t process, correlation, instance, name;
    int32_t path;
    bool operator<(const Owner& other) const {
      return process != other.process ? process < other.process : correlation < other.correlation;
    }
  };
  // Of one call of an operator.
  struct Part {
    int64_t instance, name, duration;
    bool operator<(const Part& other) const { return instance < other.instance; }
  };
  using Parts = SortedFile<Part>;

  Status read_work();
  Status pass(CommonParents* calls, const CommonParents* decided);
  Status sweep(CommonParents* calls, const CommonParents* decided, SortedFile<Owner>& owners);
  bool is_operator(int64_t dim);
  bool is_module(int64_t function);

  OperatorSource source_;
  size_t side_;
  int64_t total_ = 0, instances_ = 0;
  SortedFile<Work> work_;
  Parts parts_;
  std::vector<signed char> is_operator_, is_module_;  // by row; -1 = not looked at
};

}  // namespace tacho::analysis
