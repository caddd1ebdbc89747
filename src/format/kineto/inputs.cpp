// Rows of operators' inputs (inputs.h).
#include "format/kineto/inputs.h"

#include <fmt/format.h>

namespace tacho::format::kineto {

// Without white space but for one space behind commas, as torch.profiler writes it: files that were formatted since
// have equal rows.
int64_t InputRows::text(std::string_view json, bool& cut) {
  text_.clear();
  bool quoted = false;
  for (size_t i = 0; i < json.size() && text_.size() <= kLongest; ++i) {
    const char c = json[i];
    if (!quoted && (c == ' ' || c == '\n' || c == '\r' || c == '\t')) continue;
    if (c == '"') quoted = !quoted;
    text_ += c;
    if (quoted && c == '\\' && i + 1 < json.size()) text_ += json[++i];
    if (!quoted && c == ',') text_ += ' ';
  }
  if (text_.size() > kLongest) {
    text_.resize(kLongest);
    cut = true;
  }
  return writer_.string(text_);
}

int64_t InputRows::row(const Event::Inputs& inputs) {
  if (inputs.dims.empty() && inputs.types.empty() && inputs.strides.empty() && inputs.concrete.empty()) return 0;
  trace::Hash128 hash{};
  for (const std::string_view part : {inputs.dims, inputs.types, inputs.strides, inputs.concrete}) {
    const trace::Hash128 one = trace::hash_128(part);
    hash.low = (hash.low ^ one.low) * 0x9e3779b97f4a7c15ULL;
    hash.high = (hash.high ^ one.high) * 0xc2b2ae3d27d4eb4fULL;
    hash.low ^= hash.high >> 29;
  }
  if (!slots_) slots_ = std::make_unique<std::array<Slot, kSlots>>();
  Slot& slot = (*slots_)[hash.low % kSlots];
  if (slot.row == 0 || slot.hash.low != hash.low || slot.hash.high != hash.high) {
    slot = {.hash = hash, .row = 0, .cut = false};
    event::row::OperatorInput row;
    row.dims = text(inputs.dims, slot.cut);
    row.types = text(inputs.types, slot.cut);
    row.strides = text(inputs.strides, slot.cut);
    row.concrete = text(inputs.concrete, slot.cut);
    slot.row = writer_.dimension(row);
  }
  cut_ += slot.cut ? 1 : 0;
  return slot.row;
}

void InputRows::finish() {
  if (cut_ > 0)
    writer_.note(0, event::NoteSeverity::kInfo,
                 fmt::format("the inputs of {} {} longer than {} bytes and were cut there", cut_,
                             cut_ == 1 ? "operator are" : "operators are", kLongest));
}

}  // namespace tacho::format::kineto
