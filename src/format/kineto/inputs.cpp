// Rows of operators' inputs (inputs.h).
#include "format/kineto/inputs.h"

#include "base/format.h"

namespace tacho::format::kineto {
namespace {

// Without white space but for one space behind commas, as torch.profiler writes it: files that were formatted since
// have equal rows. `most`: bytes after which it stops.
void put_compact(std::string& out, std::string_view json, size_t most) {
  bool quoted = false;
  for (size_t i = 0; i < json.size() && out.size() <= most; ++i) {
    const char c = json[i];
    if (!quoted && (c == ' ' || c == '\n' || c == '\r' || c == '\t')) continue;
    if (c == '"') quoted = !quoted;
    out += c;
    if (quoted && c == '\\' && i + 1 < json.size()) out += json[++i];
    if (!quoted && c == ',') out += ' ';
  }
}

}  // namespace

int64_t InputRows::text(std::string_view json, bool& cut) {
  constexpr std::string_view kCut = "...";
  text_.clear();
  if (json.starts_with('"'))  // a text as it stands: what cannot be said in numbers, or was cut before
    json::JsonTokens::unescape(json.substr(1, json.size() - 2), text_);
  else
    put_compact(text_, json, kLongest);
  if (text_.size() > kLongest) {
    size_t end = kLongest - kCut.size();
    while (end > 0 && (static_cast<uint8_t>(text_[end]) & 0xc0) == 0x80) --end;  // between characters
    text_.resize(end);
    text_ += kCut;
    cut = true;
  }
  const int64_t before = writer_.rows(event::Table::kString), row = writer_.string(text_);
  if (writer_.rows(event::Table::kString) > before) bytes_ += text_.size();
  return row;
}

int64_t InputRows::make_row(const Event::Inputs& inputs, bool& cut) {
  event::row::OperatorInput row;
  row.dims = text(inputs.dims, cut);
  row.types = text(inputs.types, cut);
  row.strides = text(inputs.strides, cut);
  row.concrete = text(inputs.concrete, cut);
  return row == event::row::OperatorInput{} ? 0 : writer_.dimension(row);
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
    if (bytes_ >= kMostText) {
      ++left_out_;
      return 0;
    }
    slot = {.hash = hash, .row = 0, .cut = false};
    slot.row = make_row(inputs, slot.cut);
  }
  cut_ += slot.cut ? 1 : 0;
  return slot.row;
}

void InputRows::finish() {
  if (cut_ > 0)
    writer_.note(0, event::NoteSeverity::kInfo,
                 fmt::format("the inputs of {} {} longer than {} KiB and were cut there", cut_,
                             cut_ == 1 ? "operator are" : "operators are", kLongest >> 10));
  if (left_out_ > 0)
    writer_.note(0, event::NoteSeverity::kWarning,
                 fmt::format("different inputs of operators took {} MiB, the most that are kept: {} {} without inputs",
                             kMostText >> 20, left_out_, left_out_ == 1 ? "operator is" : "operators are"));
}

}  // namespace tacho::format::kineto
