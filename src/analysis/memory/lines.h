// Which line of the program's own code a stack, Python's open functions or an operator's place stands for, as texts
// with numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/operators/operators.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// Numbers of texts; 0 = unknown.
class MemoryLines {
 public:
  explicit MemoryLines(const trace::Trace& trace) : trace_(trace), texts_(1) {}

  /// Of a row of table stack: its innermost frame of the program's own code, else of Python, else any.
  uint32_t of_stack(int64_t stack);
  /// Of rows of table function, innermost last, as torch.profiler names Python's functions: "train.py(31): forward".
  uint32_t of_functions(std::span<const int64_t> functions);
  /// Of an operator's place, "/home/u/train.py:31".
  uint32_t of_place(std::string_view place);
  /// "(no call stack)": a thread without functions that the recording knows, such as autograd's.
  uint32_t without_stack() { return number("(no call stack)"); }
  /// Whether a stack lies in the optimizer, the backward or the forward pass, by torch's files; nullopt = it does not
  /// say.
  std::optional<OperatorPhase> phase_of_stack(int64_t stack);

  const std::string& text(uint32_t number) const { return texts_[number]; }

 private:
  struct Known {
    uint32_t line = 0;
    std::optional<OperatorPhase> phase;
  };
  const Known& known(int64_t stack);
  uint32_t number(const std::string& text);

  const trace::Trace& trace_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::unordered_map<int64_t, Known> stacks_;
  std::unordered_map<int64_t, std::pair<uint32_t, bool>> functions_;  // its line, and whether it is own code
};

}  // namespace tacho::analysis
