// What torch.profiler tells about the inputs of operators, as rows of table operator_input.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "format/kineto/event.h"
#include "trace/store/hash.h"
#include "trace/write/writer.h"

namespace tacho::format::kineto {

class InputRows {
 public:
  /// A text beyond this is cut there.
  static constexpr size_t kLongest = 4096;

  explicit InputRows(trace::TraceWriter& writer) : writer_(writer) {}
  /// The row of an operator's inputs; 0 where the file tells nothing.
  int64_t row(const Event::Inputs& inputs);
  /// Says how many operators have texts that were cut.
  void finish();

 private:
  static constexpr size_t kSlots = 4096;
  struct Slot {
    trace::Hash128 hash;
    int64_t row;
    bool cut;
  };
  int64_t text(std::string_view json, bool& cut);

  trace::TraceWriter& writer_;
  int64_t cut_ = 0;
  std::string text_;
  std::unique_ptr<std::array<Slot, kSlots>> slots_;  // rows that came lately, by hash: operators repeat
};

}  // namespace tacho::format::kineto
