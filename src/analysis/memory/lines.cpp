// Lines of stacks (lines.h).
#include "analysis/memory/lines.h"

#include <charconv>

#include "analysis/stacks/own_code.h"
#include "base/format.h"
#include "trace/read/rows.h"

namespace tacho::analysis {

namespace {

using event::kUnknown;
namespace column = event::column;

std::string_view base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string line_text(std::string_view file, int64_t line, std::string_view function) {
  std::string text(base_name(file));
  if (line > 0 && line != kUnknown) text += fmt::format(":{}", line);
  if (!function.empty()) text += fmt::format("{}{}", text.empty() ? "" : " ", function);
  return text;
}

}  // namespace

uint32_t MemoryLines::number(const std::string& text) {
  if (text.empty()) return 0;
  const auto [found, fresh] = numbers_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
  if (fresh) texts_.push_back(text);
  return found->second;
}

const MemoryLines::Known& MemoryLines::known(int64_t stack) {
  const auto [found, fresh] = stacks_.try_emplace(stack);
  Known& known = found->second;
  if (!fresh || stack == 0) return known;
  uint32_t own = 0, python = 0, native = 0, any = 0;
  size_t depth = 0;
  for (int64_t at = stack; at != 0 && depth < 4096; at = trace::cell<column::Stack::parent>(trace_, at), ++depth) {
    const auto row = trace::row<event::row::Frame>(trace_, trace::cell<column::Stack::frame>(trace_, at));
    const bool is_python = row.kind == event::FrameKind::kPython;
    StackFrame frame;
    frame.part = is_python ? StackPart::kPython : StackPart::kNative;
    frame.name = trace_.string(row.function);
    frame.file = trace_.string(row.file);
    frame.module = trace_.string(row.module);
    frame.line = row.line;
    if (any == 0 && !frame.name.empty()) any = number(line_text(frame.file, row.line, frame.name));
    if (python == 0 && is_python) python = number(line_text(frame.file, row.line, frame.name));
    if (own == 0 && is_python && own_frame(frame)) own = number(line_text(frame.file, row.line, frame.name));
    if (native == 0 && !is_python && own_frame(frame))
      native = number(
          line_text(frame.file, row.line, frame.name.empty() ? base_name(frame.module) : std::string_view(frame.name)));
    // The innermost frame that tells it.
    if (known.phase) continue;
    if (frame.file.find("/torch/optim/") != std::string::npos)
      known.phase = OperatorPhase::kOptimizer;
    else if (frame.file.find("/torch/autograd/") != std::string::npos || frame.file.ends_with("/torch/_tensor.py") ||
             frame.name.starts_with("torch::autograd::Engine"))
      known.phase = OperatorPhase::kBackward;
    else if (frame.file.find("/torch/nn/") != std::string::npos)
      known.phase = OperatorPhase::kForward;
    else if (frame.file.find("/torch/utils/data/") != std::string::npos)
      known.phase = OperatorPhase::kData;
  }
  known.line = own != 0 ? own : python != 0 ? python : native != 0 ? native : any;
  return known;
}

uint32_t MemoryLines::of_stack(int64_t stack) {
  return stack == 0 ? 0 : known(stack).line;
}

std::optional<OperatorPhase> MemoryLines::phase_of_stack(int64_t stack) {
  return stack == 0 ? std::nullopt : known(stack).phase;
}

uint32_t MemoryLines::of_functions(std::span<const int64_t> functions) {
  uint32_t innermost = 0;
  for (size_t i = functions.size(); i > 0; --i) {
    const auto [found, fresh] = functions_.try_emplace(functions[i - 1]);
    auto& [line, own] = found->second;
    if (fresh) {
      // "path(31): name", "<built-in method run_backward of ...>"
      const std::string_view text = trace::text<column::Function::name>(trace_, functions[i - 1]);
      const size_t open = text.find('('), close = text.find("): ", open == std::string_view::npos ? 0 : open);
      int64_t number_of_line = 0;
      if (open != std::string_view::npos && close != std::string_view::npos &&
          std::from_chars(text.data() + open + 1, text.data() + close, number_of_line).ec == std::errc()) {
        StackFrame frame;
        frame.part = StackPart::kPython;
        frame.file = text.substr(0, open);
        frame.name = text.substr(close + 3);
        frame.line = number_of_line;
        line = number(line_text(frame.file, number_of_line, frame.name));
        own = own_frame(frame);
      }
    }
    if (innermost == 0) innermost = line;
    if (own) return line;
  }
  return innermost;
}

uint32_t MemoryLines::of_place(std::string_view place) {
  return number(std::string(base_name(place)));
}

}  // namespace tacho::analysis
