// Origins as JSON (origin.h).
#include "format/import/origin.h"

#include <span>

#include "base/format.h"
#include "base/text/json_writer.h"
#include "format/json/members.h"

namespace tacho::format::imported {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

struct OriginMember {
  std::string_view key;
  int cell;
  bool text;
};
constexpr OriginMember kOfProcess[] = {{"pid", column::Process::pid, false},
                                       {"name", column::Process::name, true},
                                       {"host", column::Process::host, true},
                                       {"rank", column::Process::rank, false},
                                       {"run", column::Process::run, false}};
constexpr OriginMember kOfDevice[] = {{"index", column::Device::index, false},
                                      {"name", column::Device::name, true},
                                      {"vendor", column::Device::vendor, true},
                                      {"architecture", column::Device::architecture, true},
                                      {"uuid", column::Device::uuid, true}};

std::string origin_of(const trace::Trace& trace, Table table, std::span<const OriginMember> members, int64_t row) {
  std::string out;
  for (const OriginMember& member : members) {
    const int64_t cell = trace.cell(table, row, member.cell);
    if (member.text ? trace.string(cell).empty() : cell == kUnknown) continue;
    out += out.empty() ? "{" : ", ";
    append_json_quoted(out, member.key);
    out += ": ";
    if (member.text)
      append_json_quoted(out, trace.string(cell));
    else
      out += fmt::format("{}", cell);
  }
  return out.empty() ? "{}" : out + "}";
}

void set_origin(trace::TraceWriter& writer, Table table, std::span<const OriginMember> members, int64_t row,
                std::string_view origin) {
  for (const OriginMember& member : members) {
    std::string text;
    if (member.text) {
      if (json::text_member(origin, member.key, text)) writer.update(table, row, member.cell, writer.string(text));
    } else if (const int64_t value = json::number_member(origin, member.key); value != kUnknown) {
      writer.update(table, row, member.cell, value);
    }
  }
}

}  // namespace

std::string process_origin(const trace::Trace& trace, int64_t process) {
  return origin_of(trace, Table::kProcess, kOfProcess, process);
}

std::string device_origin(const trace::Trace& trace, int64_t device) {
  return origin_of(trace, Table::kDevice, kOfDevice, device);
}

void set_process_origin(trace::TraceWriter& writer, int64_t process, std::string_view origin) {
  // Every origin of tacho's has the run; a process without a name may have got a word for one, and one without a pid a
  // number.
  if (json::number_member(origin, "run") != kUnknown) {
    writer.update(Table::kProcess, process, column::Process::name, 0);
    writer.update(Table::kProcess, process, column::Process::pid, kUnknown);
  }
  set_origin(writer, Table::kProcess, kOfProcess, process, origin);
}

void set_device_origin(trace::TraceWriter& writer, int64_t device, std::string_view origin) {
  set_origin(writer, Table::kDevice, kOfDevice, device, origin);
}

}  // namespace tacho::format::imported
