// Processes, threads, agents and kernels of a rocpd database (recording_reader.h).
#include <algorithm>

#include "event/times.h"
#include "format/import/origin.h"
#include "format/rocpd/recording_reader.h"

namespace tacho::format::rocpd {

using event::kUnknown;
using event::Table;
namespace row = event::row;

namespace {

constexpr size_t kMostDescribed = 1 << 20;  // rows of a table of descriptions that are remembered
constexpr size_t kMostSymbols = 1 << 17;

}  // namespace

// Merged databases may have one process in each run, all with the same facts.
int64_t RecordingReader::unused_run(row::Process process) {
  const int64_t first = writer_.dimension(process);
  const auto [next, fresh] = next_runs_.try_emplace(first, 1);
  if (fresh) return first;
  process.run = next.value()++;
  return writer_.dimension(process);
}

Status RecordingReader::processes_and_threads() {
  TACHO_TRY(rows("rocpd_info_node", {"id", "hostname"}, [&](NamedScan& scan) {
    if (hosts_.size() < kMostDescribed)
      hosts_.emplace(scan.id(0), std::string(scan.string(1)));
    else
      ++forgotten_;
  }));
  TACHO_TRY(rows("rocpd_info_process", {"id", "nid", "ppid", "pid", "start", "command", "name", "extdata"},
                 [&](NamedScan& scan) {
                   if (processes_.size() >= kMostDescribed) {
                     ++forgotten_;
                     return;
                   }
                   const auto host = hosts_.find(scan.id(1));
                   const std::string_view command = scan.string(5);
                   std::string_view name = command.substr(0, command.find(' '));
                   if (const size_t slash = name.rfind('/'); slash != std::string_view::npos)
                     name.remove_prefix(slash + 1);
                   if (name.empty()) name = scan.string(6);
                   const int64_t start = scan.number(4);
                   const int64_t row = unused_run({.pid = scan.number(3),
                                                   .parent_pid = scan.number(2),
                                                   .start = event::is_time(start) ? start : kUnknown,
                                                   .name = writer_.string(name),
                                                   .command = writer_.string(command),
                                                   .host = host != hosts_.end() ? writer_.string(host->second) : 0});
                   imported::set_process_origin(writer_, row, scan.string(7));
                   processes_.emplace(scan.id(0), row);
                 }));
  return rows("rocpd_info_thread", {"id", "pid", "tid", "name"}, [&](NamedScan& scan) {
    if (threads_.size() < kMostDescribed)
      threads_.emplace(scan.id(0), writer_.dimension(row::Thread{.process = process(scan.id(1)),
                                                                 .tid = scan.number(2),
                                                                 .name = writer_.string(scan.string(3))}));
    else
      ++forgotten_;
  });
}

Status RecordingReader::agents() {
  return rows(
      "rocpd_info_agent",
      {"id", "type", "absolute_index", "logical_index", "type_index", "name", "model_name", "vendor_name",
       "product_name", "generic_name", "extdata"},
      [&](NamedScan& scan) {
        if (agents_.size() >= kMostDescribed) {
          ++forgotten_;
          return;
        }
        using event::DeviceKind;
        const std::string_view type = scan.string(1);
        const DeviceKind kind = type == "GPU"   ? DeviceKind::kGpu
                                : type == "CPU" ? DeviceKind::kCpu
                                                : DeviceKind::kUnknown;
        // In schema 4 `name` is what the user calls it, and often empty.
        const std::string_view architecture = scan.string(9).empty() ? scan.string(5) : scan.string(9);
        std::string_view product = scan.string(8);
        for (const std::string_view other : {scan.string(6), scan.string(5), architecture})
          if (product.empty()) product = other;
        const std::string_view origin = scan.string(10);
        if (origin == kHostAgent) {
          agents_.emplace(scan.id(0), 0);
          return;
        }
        // A file of tacho's names the product where it knows no architecture.
        const bool told = origin.find("index") != std::string_view::npos;
        const int64_t device = writer_.dimension(row::Device{
            .kind = kind,
            .index = scan.number(4),
            .name = writer_.string(product),
            .vendor = writer_.string(scan.string(7)),
            .architecture =
                kind == DeviceKind::kGpu && !(told && architecture == product) ? writer_.string(architecture) : 0});
        const auto property = [&](std::string_view key, int column) {
          if (const int64_t value = scan.number(column); value != kUnknown)
            writer_.property(Table::kDevice, device, key, std::to_string(value));
        };
        property("node_id", 2);
        property("logical_node_id", 3);
        property("logical_node_type_id", 4);
        imported::set_device_origin(writer_, device, origin);
        agents_.emplace(scan.id(0), device);
      });
}

Status RecordingReader::dimensions() {
  TACHO_TRY(processes_and_threads());
  TACHO_TRY(agents());
  symbols_table_ = scan_of("rocpd_info_kernel_symbol",
                           {"id", "kernel_name", "display_name", "group_segment_size", "private_segment_size",
                            "sgpr_count", "arch_vgpr_count", "accum_vgpr_count"});
  if (forgotten_ > 0)
    writer_.note(
        0, event::NoteSeverity::kWarning,
        fmt::format("{} of the database's nodes, processes, threads and agents are too many to be known by name",
                    forgotten_));
  return {};
}

const RecordingReader::Symbol& RecordingReader::symbol(int64_t id) {
  if (symbols_.size() > kMostSymbols) symbols_.clear();
  const auto [found, fresh] = symbols_.try_emplace(id, Symbol{0, kUnknown, kUnknown, kUnknown, kUnknown});
  if (!fresh) return found->second;
  if (symbols_table_ == nullptr || id == 0 || !symbols_table_->find(id)) {
    found.value().name = id != 0 ? writer_.string(fmt::format("kernel {}", id)) : 0;
    return found->second;
  }
  const NamedScan& scan = *symbols_table_;
  // Prefers the mangled name: it is shown demangled anyway.
  const std::string_view name = scan.string(1).empty() ? scan.string(2) : scan.string(1);
  found.value() = {writer_.string(name), scan.number(3), scan.number(5), scan.number(6), scan.number(7)};
  return found->second;
}

// Says which tables have rows that no trace can hold.
void RecordingReader::tables_left_out() {
  static constexpr std::string_view kRead[] = {
      "rocpd_metadata",    "rocpd_string",          "rocpd_track",       "rocpd_event",     "rocpd_pmc_event",
      "rocpd_region",      "rocpd_sample",          "rocpd_timestamp",   "rocpd_hip_event", "rocpd_kernel_dispatch",
      "rocpd_memory_copy", "rocpd_memory_allocate", "rocpd_graph_launch"};
  std::string names;
  for (const sqlite::StoredTable& one : db_.tables()) {
    std::string_view name = one.name;
    if (!name.starts_with("rocpd_") || !name.ends_with(suffix_) || name.starts_with("rocpd_info_")) continue;
    name.remove_suffix(suffix_.size());
    if (std::find(std::begin(kRead), std::end(kRead), name) != std::end(kRead) || !has_rows(name)) continue;
    names.append(names.empty() ? "" : ", ").append(name);
  }
  if (!names.empty())
    writer_.note(
        0, event::NoteSeverity::kInfo,
        fmt::format("tables of the rocpd database that are not carried over: {}; query the database itself for "
                    "them",
                    names));
}

}  // namespace tacho::format::rocpd
