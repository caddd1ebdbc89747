// Facts of a trace as JSON, for the scripts that check traces taken on real devices: kernels with counts and durations,
// copies with bytes, device work whose API call is missing, order of times, losses, properties of processes.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/text/demangle.h"
#include "event/schema.h"
#include "trace/trace.h"

using namespace tacho;
using event::Table;
namespace column = event::column;

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

struct Sum {
  int64_t count = 0, ns = 0, bytes = 0;
};

void print(const char* title, const std::map<std::string, Sum>& sums) {
  std::printf(" %s: {", quoted(title).c_str());
  const char* separator = "\n  ";
  for (const auto& [name, sum] : sums) {
    std::printf("%s%s: {\"count\": %" PRId64 ", \"ns\": %" PRId64 ", \"bytes\": %" PRId64 "}", separator,
                quoted(name).c_str(), sum.count, sum.ns, sum.bytes);
    separator = ",\n  ";
  }
  std::printf("},\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: trace_facts FILE.tacho\n"), 2;
  const auto opened = trace::Trace::open(argv[1]);
  if (!opened) return std::fprintf(stderr, "trace_facts: %s\n", opened.error().message.c_str()), 1;
  const trace::Trace& trace = **opened;
  const auto process_of = [&](int64_t track) { return trace.cell(Table::kTrack, track, column::Track::process); };
  const auto failed = [](const Status& status) {
    if (!status) std::fprintf(stderr, "trace_facts: %s\n", status.error().message.c_str());
    return !status;
  };
  using Values = std::span<const std::span<const int64_t>>;

  // API calls by (process, correlation).
  std::unordered_set<uint64_t> calls;
  std::map<std::string, Sum> api;
  int64_t api_rows = 0, earliest = INT64_MAX, latest = INT64_MIN;
  const int api_columns[] = {column::Api::track, column::Api::start, column::Api::duration, column::Api::dim,
                             column::Api::correlation};
  if (failed(trace::visit_chunks(trace, Table::kApi, api_columns, [&](size_t, Values values) {
        for (size_t row = 0; row < values[0].size(); ++row) {
          calls.insert(static_cast<uint64_t>(values[4][row]) * 64 + static_cast<uint64_t>(process_of(values[0][row])));
          Sum& sum = api[std::string(trace.text(Table::kFunction, values[3][row], column::Function::name))];
          ++sum.count;
          if (values[2][row] != event::kUnknown) sum.ns += values[2][row];
          earliest = std::min(earliest, values[1][row]);
          latest = std::max(latest, values[1][row]);
          ++api_rows;
        }
        return true;
      })))
    return 1;

  std::map<std::string, Sum> kernels, copies, fills;
  int64_t unlinked = 0, before_call = 0, zero_length = 0, outside = 0, graph_nodes = 0;
  const auto device_work = [&](Table table, std::map<std::string, Sum>& into) {
    std::vector<int> columns = {column::Fact::track, column::Fact::start, column::Fact::duration, column::Fact::dim,
                                column::Fact::correlation};
    columns.push_back(table == Table::kDispatch ? static_cast<int>(column::Dispatch::graph_node)
                                                : static_cast<int>(column::Copy::bytes));
    return trace::visit_chunks(trace, table, columns, [&, table](size_t, Values values) {
      for (size_t row = 0; row < values[0].size(); ++row) {
        std::string name;
        if (table == Table::kDispatch)
          name = demangle(trace.text(Table::kKernel, values[3][row], column::Kernel::name));
        else if (table == Table::kCopy)
          name = event::to_string(static_cast<event::CopyDirection>(
              trace.cell(Table::kCopyShape, values[3][row], column::CopyShape::direction)));
        else
          name = "fill";
        Sum& sum = into[name];
        ++sum.count;
        sum.ns += values[2][row];
        if (table == Table::kDispatch)
          graph_nodes += values[5][row] != 0;
        else
          sum.bytes += values[5][row];
        zero_length += values[2][row] == 0;
        outside += !calls.empty() && values[1][row] < earliest;
        unlinked += !calls.contains(static_cast<uint64_t>(values[4][row]) * 64 +
                                    static_cast<uint64_t>(process_of(values[0][row])));
      }
      return true;
    });
  };
  if (failed(device_work(Table::kDispatch, kernels)) || failed(device_work(Table::kCopy, copies)) ||
      failed(device_work(Table::kFill, fills)))
    return 1;

  // Kernels that start before the call that launched them: must stay within the clock's error.
  std::map<uint64_t, int64_t> call_start;
  if (api_rows < 3'000'000) {
    static_cast<void>(trace::visit_chunks(trace, Table::kApi, api_columns, [&](size_t, Values values) {
      for (size_t row = 0; row < values[0].size(); ++row)
        call_start.emplace(
            static_cast<uint64_t>(values[4][row]) * 64 + static_cast<uint64_t>(process_of(values[0][row])),
            values[1][row]);
      return true;
    }));
    const int columns[] = {column::Dispatch::track, column::Dispatch::start, column::Dispatch::correlation};
    static_cast<void>(trace::visit_chunks(trace, Table::kDispatch, columns, [&](size_t, Values values) {
      for (size_t row = 0; row < values[0].size(); ++row) {
        const auto found = call_start.find(static_cast<uint64_t>(values[2][row]) * 64 +
                                           static_cast<uint64_t>(process_of(values[0][row])));
        before_call += found != call_start.end() && values[1][row] < found->second;
      }
      return true;
    }));
  }

  std::printf("{\n");
  print("kernels", kernels);
  print("copies", copies);
  print("fills", fills);
  print("api", api);
  int64_t rows = 0;
  std::printf(" \"rows\": {");
  const char* separator = "";
  for (const event::TableInfo& info : event::all_tables()) {
    if (!event::is_fact(info.table)) continue;
    rows += trace.rows(info.table);
    std::printf("%s%s: %" PRId64, separator, quoted(info.name).c_str(), trace.rows(info.table));
    separator = ", ";
  }
  std::printf("},\n \"all_rows\": %" PRId64 ", \"file_bytes\": %" PRIu64 ",\n", rows, trace.file_size());
  std::printf(" \"unlinked\": %" PRId64 ", \"starts_before_call\": %" PRId64 ", \"zero_length\": %" PRId64
              ", \"before_first_call\": %" PRId64 ", \"graph_nodes\": %" PRId64 ", \"tracks\": %" PRId64
              ", \"processes\": %" PRId64 ",\n",
              unlinked, before_call, zero_length, outside, graph_nodes, trace.rows(Table::kTrack) - 1,
              trace.rows(Table::kProcess) - 1);
  std::printf(" \"losses\": {");
  separator = "";
  const int loss_columns[] = {column::Loss::table, column::Loss::reason, column::Loss::count};
  std::map<std::string, int64_t> losses;
  static_cast<void>(trace::visit_chunks(trace, Table::kLoss, loss_columns, [&](size_t, Values values) {
    for (size_t row = 0; row < values[0].size(); ++row)
      losses[std::string(event::to_string(static_cast<event::LossReason>(values[1][row])))] += values[2][row];
    return true;
  }));
  for (const auto& [reason, count] : losses) {
    std::printf("%s%s: %" PRId64, separator, quoted(reason).c_str(), count);
    separator = ", ";
  }
  std::printf("},\n \"notes\": [");
  separator = "";
  const int note_columns[] = {column::Note::text};
  static_cast<void>(trace::visit_chunks(trace, Table::kNote, note_columns, [&](size_t, Values values) {
    for (const int64_t text : values[0]) {
      std::printf("%s%s", separator, quoted(trace.string(text)).c_str());
      separator = ", ";
    }
    return true;
  }));
  std::printf("],\n \"properties\": {");
  separator = "";
  std::map<std::string, std::string> properties;
  for (int64_t row = 1; row < trace.rows(Table::kProperty); ++row)
    properties[std::string(trace.text(Table::kProperty, row, column::Property::key))] =
        trace.text(Table::kProperty, row, column::Property::value);
  for (const auto& [key, value] : properties) {
    std::printf("%s\n  %s: %s", separator, quoted(key).c_str(), quoted(value).c_str());
    separator = ",";
  }
  std::printf("}\n}\n");
  return 0;
}
