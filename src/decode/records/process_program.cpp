// Counters and extended payloads that the program reports itself (process_state.h).
#include <bit>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "base/text/json_writer.h"  // quoted texts
#include "decode/records/process_state.h"
#include "decode/records/record_values.h"

namespace tacho::decode {

using event::Table;
namespace row = event::row;

namespace {

// JSON knows no infinities.
std::string number_text(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : std::string("null");
}

}  // namespace

void ProcessState::take(const event::ProgramCounterRecord& record) {
  if (!reach(counters_, record.header.value)) return count_bad(Table::kReading);
  std::string name(text(record.name));
  if (record.group != 0)
    name = name.empty() ? std::string(text(record.group)) : fmt::format("{}.{}", text(record.group), name);
  if (name.empty()) name = fmt::format("counter {}", record.header.value);
  const std::string_view domain = text(record.domain);
  const int64_t counter = writer_.dimension(row::Counter{.name = writer_.string(name),
                                                         .unit = string(record.unit),
                                                         .text = string(record.text),
                                                         .block = writer_.string(domain)});
  counters_[record.header.value] =
      writer_.dimension(row::Track{.kind = event::TrackKind::kCounter,
                                   .process = row(),
                                   .native = record.header.value,
                                   .name = writer_.string(domain.empty() ? name : fmt::format("{}: {}", domain, name)),
                                   .category = writer_.string("program counter"),
                                   .counter = counter});
}

void ProcessState::take(const event::ReadingRecord& record) {
  ++facts_.hooks;
  const uint32_t number = record.header.value;
  if (number >= counters_.size() || counters_[number] == 0) return count_bad(Table::kReading);
  const int64_t time = host_time(record.time);
  int64_t start = 0;
  if (__builtin_sub_overflow(time, record.ago, &start)) return count_bad(Table::kReading);
  writer_.add(row::Reading{
      .track = counters_[number], .start = plausible(start), .value = std::bit_cast<int64_t>(record.value)});
}

void ProcessState::take(const event::FieldsRecord& record) {
  const size_t room = (record.header.size - sizeof record) / sizeof(event::PayloadField);
  if (record.count > room || !reach(layouts_, record.header.value)) return count_bad(Table::kMarker);
  std::vector<event::PayloadField>& fields = layouts_[record.header.value];
  fields.resize(record.count);
  if (!fields.empty())
    std::memcpy(fields.data(), reinterpret_cast<const std::byte*>(&record + 1),
                fields.size() * sizeof(event::PayloadField));
}

void ProcessState::take(const event::EnumerationRecord& record) {
  const size_t room = (record.header.size - sizeof record) / sizeof(event::EnumerationValue);
  if (record.count > room || !reach(enumerations_, record.header.value)) return count_bad(Table::kMarker);
  std::vector<event::EnumerationValue>& values = enumerations_[record.header.value];
  values.resize(record.count);
  if (!values.empty())
    std::memcpy(values.data(), reinterpret_cast<const std::byte*>(&record + 1),
                values.size() * sizeof(event::EnumerationValue));
}

// A value by its name, or flags by theirs; empty = it has none.
std::string ProcessState::enumeration_text(uint32_t number, uint64_t value) const {
  if (number == 0 || number >= enumerations_.size()) return {};
  std::string flags;
  uint64_t rest = value;
  for (const event::EnumerationValue& one : enumerations_[number]) {
    if (one.flag == 0 && one.value == value) return std::string(text(one.name));
    if (one.flag == 0 || one.value == 0 || (value & one.value) != one.value) continue;
    flags += fmt::format("{}{}", flags.empty() ? "" : " | ", text(one.name));
    rest &= ~one.value;
  }
  if (!flags.empty() && rest != 0) flags += fmt::format(" | {:#x}", rest);
  return flags;
}

bool ProcessState::read_payload(const event::FieldsHeader& head, std::span<const std::byte> bytes,
                                std::string& members) const {
  if (head.fields >= layouts_.size()) return false;
  const auto word = [&](uint64_t& value) {
    if (bytes.size() < sizeof value) return false;
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes = bytes.subspan(sizeof value);
    return true;
  };
  const std::vector<event::PayloadField>& fields = layouts_[head.fields];
  for (size_t i = 0; i < fields.size(); ++i) {
    const event::PayloadField& field = fields[i];
    uint64_t value = 0;
    if (!word(value)) return false;
    std::string name(text(field.name));
    if (name.empty()) name = fmt::format("value {}", i + 1);
    if (field.outer != 0) name = fmt::format("{}.{}", text(field.outer), name);
    if (!members.empty()) members += ',';
    append_json_quoted(members, name);
    members += ':';
    switch (field.kind) {
      case event::FieldKind::kSigned:
        members += fmt::format("{}", static_cast<int64_t>(value));
        break;
      case event::FieldKind::kDouble:
        members += number_text(std::bit_cast<double>(value));
        break;
      case event::FieldKind::kAddress:
        append_json_quoted(members, fmt::format("{:#x}", value));
        break;
      case event::FieldKind::kString:
        append_json_quoted(members, text(static_cast<uint32_t>(value)));
        break;
      case event::FieldKind::kText: {
        if (value > bytes.size()) return false;
        append_json_quoted(members, {reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(value)});
        bytes = bytes.subspan(std::min<size_t>((static_cast<size_t>(value) + 7) & ~size_t{7}, bytes.size()));
        break;
      }
      case event::FieldKind::kUnsigned:
      case event::FieldKind::kEnd:
      default:
        if (const std::string known = enumeration_text(field.enumeration, value); !known.empty())
          append_json_quoted(members, known);
        else
          members += fmt::format("{}", value);
    }
  }
  return true;
}

void ProcessState::read_fields(std::span<const std::byte> bytes, std::string& members) {
  uint64_t size = 0;
  if (bytes.size() < sizeof size) return count_bad(Table::kMarker);
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes = bytes.subspan(sizeof size);
  if (size > bytes.size()) return count_bad(Table::kMarker);
  bytes = bytes.first(static_cast<size_t>(size));
  while (bytes.size() >= sizeof(event::FieldsHeader)) {
    event::FieldsHeader head;
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes = bytes.subspan(sizeof head);
    const size_t before = members.size();
    if (head.bytes > bytes.size() || !read_payload(head, bytes.first(head.bytes), members)) {
      members.resize(before);
      return count_bad(Table::kMarker);
    }
    bytes = bytes.subspan(head.bytes);
  }
}

int64_t ProcessState::fields_text(const std::string& members) {
  return members.empty() ? 0 : writer_.string(fmt::format("{{{}}}", members));
}

}  // namespace tacho::decode
