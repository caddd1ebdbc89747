// Markers of a process: ranges that are open on its threads, and labels that repeat (process_state.h).
#include <xxhash.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "decode/records/process_state.h"
#include "decode/records/record_values.h"

namespace tacho::decode {

using event::kUnknown;
using event::RecordHeader;
using event::RecordKind;
using event::Table;
namespace row = event::row;

// PyTorch's emitter writes "aten::mm, seq = 7, op_id = 31", other numbers in every call, and where it was asked for
// shapes ", sizes = [[8, 3], [3, 5]], input_op_ids = [(30,0), (12,0)]" behind them. The name alone, the sequence number
// (kUnknown = none) and the shapes (empty = none); texts with more behind them stay as they are.
static std::string_view cut_torch_numbers(std::string_view text, int64_t& sequence, std::string_view& shapes) {
  sequence = kUnknown;
  std::string_view name = text;
  constexpr std::string_view kSizes = ", sizes = ", kCauses = ", input_op_ids = ";
  if (const size_t at = name.find(kSizes); at != std::string_view::npos && at > 0) {
    shapes = name.substr(at + kSizes.size());
    shapes = shapes.substr(0, shapes.find(kCauses));
    name = name.substr(0, at);
    if (!shapes.starts_with('[') || !shapes.ends_with(']') ||
        shapes.find_first_not_of("[]0123456789, -") != std::string_view::npos) {
      shapes = {};
      return text;
    }
  } else if (const size_t causes = name.find(kCauses); causes != std::string_view::npos && causes > 0) {
    name = name.substr(0, causes);
  }
  const auto number = [&](std::string_view label) -> std::optional<int64_t> {
    const size_t at = name.rfind(label);
    if (at == std::string_view::npos || at == 0) return std::nullopt;
    int64_t value = 0;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + at + label.size(), end, value);
    if (error != std::errc() || stop != end || value < 0) return std::nullopt;
    name = name.substr(0, at);
    return value;
  };
  number(", op_id = ");
  if (const auto value = number(", seq = ")) sequence = *value;
  return name;
}

int64_t ProcessState::inputs_of(std::string_view shapes) {
  if (shapes.empty() || shapes == "[]") return 0;
  constexpr int64_t kMost = 250'000;  // different ones
  if (writer_.rows(Table::kOperatorInput) > kMost) {
    if (shapes_left_out_++ == 0)
      writer_.note(
          row(), event::NoteSeverity::kWarning,
          fmt::format("operators had more than {} different shapes of inputs: those that came later have none", kMost));
    return 0;
  }
  return writer_.dimension(row::OperatorInput{.dims = writer_.string(shapes)});
}

ProcessState::Open ProcessState::parse_marker(const std::byte* at, const RecordHeader& header, size_t fixed,
                                              event::MarkerKind kind, uint64_t time) {
  Open open{0, host_time(time), 0, 0, {}, 0};
  const std::byte* const end = at + header.size;
  const std::byte* field = at + fixed;
  // Programs repeat their markers: the same bytes became the same label before.
  constexpr size_t kCached = 1024;
  if (known_markers_.empty()) known_markers_.resize(kCached);
  const std::string_view bytes(reinterpret_cast<const char*>(field), static_cast<size_t>(end - field));
  KnownMarker& known_marker = known_markers_[(XXH3_64bits(bytes.data(), bytes.size()) ^ header.flags) % kCached];
  constexpr uint8_t kNotKept = event::kMarkerInterned | event::kMarkerFields;
  if ((header.flags & kNotKept) == 0 && known_marker.label != 0 && known_marker.flags == header.flags &&
      known_marker.kind == kind && known_marker.bytes == bytes) {
    open.label = known_marker.label;
    open.payload = known_marker.payload;
    open.domain = known_marker.domain;
    open.inputs = known_marker.inputs;
    return open;
  }
  int64_t name = 0, sequence = kUnknown;
  std::string_view shapes;
  if ((header.flags & event::kMarkerInterned) != 0) {
    name = string(header.value);
  } else {
    const size_t room = static_cast<size_t>(end - field);
    const size_t length = header.value < room ? header.value : room;
    std::string_view text(reinterpret_cast<const char*>(field), length);
    if ((header.flags & (event::kMarkerInteger | event::kMarkerDouble)) == 0 && kind == event::MarkerKind::kPushPop)
      text = cut_torch_numbers(text, sequence, shapes);
    name = writer_.string(text);
    open.inputs = inputs_of(shapes);
    field += (length + 7) & ~size_t{7};
  }
  const auto next = [&]() -> uint64_t {
    uint64_t word = 0;
    if (end - field >= 8) std::memcpy(&word, field, 8);
    field += 8;
    return word;
  };
  int64_t domain = 0, category = 0, color = kUnknown;
  auto payload = event::PayloadKind::kNone;
  if ((header.flags & event::kMarkerDomain) != 0) {
    open.domain = static_cast<uint32_t>(next());
    domain = string(open.domain);
  }
  if ((header.flags & event::kMarkerCategory) != 0) category = string(static_cast<uint32_t>(next()));
  if ((header.flags & event::kMarkerColor) != 0) color = static_cast<uint32_t>(next());
  if ((header.flags & event::kMarkerInteger) != 0) {
    payload = event::PayloadKind::kInteger;
    open.payload = static_cast<int64_t>(next());
  } else if ((header.flags & event::kMarkerDouble) != 0) {
    payload = event::PayloadKind::kDouble;
    open.payload = static_cast<int64_t>(next());
  } else if (sequence != kUnknown) {
    payload = event::PayloadKind::kInteger;
    open.payload = sequence;
  }
  if ((header.flags & event::kMarkerFields) != 0) read_fields({std::min(field, end), end}, open.fields);
  open.label = writer_.dimension(row::Label{
      .name = name, .kind = kind, .domain = domain, .category = category, .color = color, .payload = payload});
  if ((header.flags & kNotKept) == 0 && bytes.size() <= 512)
    known_marker = {std::string(bytes), header.flags, kind, open.label, open.payload, open.domain, open.inputs};
  return open;
}

void ProcessState::close(int64_t track, const Open& open, int64_t duration) {
  writer_.add(row::Marker{.track = track,
                          .start = open.start,
                          .duration = duration,
                          .dim = open.label,
                          .payload = open.payload,
                          .fields = fields_text(open.fields),
                          .inputs = open.inputs});
}

void ProcessState::marker(const tape::BlockHeader& block, const std::byte* at, const RecordHeader& header) {
  ++facts_.hooks;
  Thread& owner = thread(block);
  switch (header.kind) {
    case RecordKind::kPush:
      owner.stack.push_back(parse_marker(at, header, sizeof(event::PushRecord), event::MarkerKind::kPushPop,
                                         as<event::PushRecord>(at).time));
      break;
    case RecordKind::kPop: {
      size_t i = owner.stack.size();
      while (i > 0 && owner.stack[i - 1].domain != header.value) --i;
      if (i == 0) {
        count_bad(Table::kMarker);
        break;
      }
      Open open = std::move(owner.stack[i - 1]);
      owner.stack.erase(owner.stack.begin() + static_cast<ptrdiff_t>(i - 1));
      if ((header.flags & event::kMarkerFields) != 0)
        read_fields({at + sizeof(event::PopRecord), header.size - sizeof(event::PopRecord)}, open.fields);
      close(owner.track, open, host_duration(open.start, host_time(as<event::PopRecord>(at).time)));
      break;
    }
    case RecordKind::kMark: {
      const Open open =
          parse_marker(at, header, sizeof(event::MarkRecord), event::MarkerKind::kMark, as<event::MarkRecord>(at).time);
      close(owner.track, open, 0);
      break;
    }
    case RecordKind::kRangeStart: {
      const auto& record = as<event::RangeStartRecord>(at);
      const Open open = parse_marker(at, header, sizeof record, event::MarkerKind::kStartStop, record.time);
      ranges_.insert_or_assign(record.id, Range{open, ranges_track(owner.tid)});
      break;
    }
    case RecordKind::kRangeStop: {
      const auto& record = as<event::RangeStopRecord>(at);
      const auto found = ranges_.find(record.id);
      if (found == ranges_.end()) {
        count_bad(Table::kMarker);
        break;
      }
      Range range = found->second;
      if ((header.flags & event::kMarkerFields) != 0)
        read_fields({at + sizeof record, header.size - sizeof record}, range.open.fields);
      close(range.track, range.open, host_duration(range.open.start, host_time(record.time)));
      ranges_.erase(found);
      break;
    }
    default:
      break;
  }
}

}  // namespace tacho::decode
