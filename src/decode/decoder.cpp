// Decoding of tacho's own records (records.h); vendor buffers go to the vendor's decoder.
#include "decode/decoder.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "decode/records/module.h"
#include "decode/records/process_state.h"
#include "event/records.h"
#include "event/schema.h"

namespace tacho::decode {

using event::RecordHeader;
using event::RecordKind;
using event::Table;
namespace row = event::row;

Decoder::Decoder(trace::TraceWriter& writer, ClockMap& clocks)
    : writer_(writer), clocks_(clocks), modules_(std::make_unique<ModuleCache>()) {}
Decoder::~Decoder() = default;

ProcessState& Decoder::process(uint32_t slot) {
  // A slot number comes from the pool: bounded there, checked here.
  slot = slot < tape::kMaxProcessSlots ? slot : tape::kMaxProcessSlots;
  std::unique_ptr<ProcessState>& state = processes_[slot];
  if (!state) state = std::make_unique<ProcessState>(writer_, clocks_, *modules_, slot);
  return *state;
}

void Decoder::piece(const tape::Piece& piece) {
  ProcessState& state = process(piece.block->process_slot);
  switch (piece.block->kind) {
    case tape::BlockKind::kRecords:
    case tape::BlockKind::kDefinitions:
    case tape::BlockKind::kShared:
      break;
    case tape::BlockKind::kProgress:
      state.progress(piece.bytes);
      return;
    default:
      state.vendor_buffer(*piece.block, piece.bytes);
      return;
  }
  const std::byte* at = piece.bytes.data();
  const std::byte* const end = at + piece.bytes.size();
  while (static_cast<size_t>(end - at) >= sizeof(RecordHeader)) {
    RecordHeader header;
    std::memcpy(&header, at, sizeof header);
    if (header.size < sizeof header || header.size % 8 != 0 || header.size > static_cast<size_t>(end - at)) {
      writer_.lose(state.row(), Table::kEnd, event::LossReason::kUnknownRecord, 1);
      return;  // the rest of this piece cannot be parsed
    }
    const auto number = static_cast<size_t>(header.kind);
    if (number >= std::size(event::kRecordInfos) || header.size < event::kRecordInfos[number].size) {
      writer_.lose(state.row(), Table::kEnd, event::LossReason::kUnknownRecord, 1);
    } else if (header.kind == RecordKind::kProcess) {
      const auto* record = reinterpret_cast<const event::ProcessRecord*>(at);
      const auto parent = processes_.find(record->parent_slot);
      const bool inherits = parent != processes_.end() && record->parent_slot != piece.block->process_slot;
      if (const auto made = adopted_.find(record->pid); made != adopted_.end()) {
        state.take_row(made->second);
        adopted_.erase(made);
      }
      const ProcessState*& newest = newest_of_pid_[{piece.block->aux64, record->pid}];
      state.describe(*record, inherits ? parent->second.get() : nullptr, newest != &state ? newest : nullptr);
      newest = &state;
    } else {
      state.record(*piece.block, at, header);
    }
    at += header.size;
  }
}

void Decoder::settle() {
  for (auto& [slot, state] : processes_)
    if (state) state->settle();
}

void Decoder::finish() {
  for (auto& [slot, state] : processes_)
    if (state) state->finish();
  for (const ClockTuple& tuple : clocks_.tuples())
    writer_.add(row::Clock{
        .raw = tuple.raw, .monotonic = tuple.monotonic, .boottime = tuple.boottime, .realtime = tuple.realtime});
}

void Decoder::count_in_flight(std::span<const uint64_t> dropped) {
  const auto lose = [this](ProcessState& process, Table table, event::LossReason reason, uint64_t count) {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max() / (1 << 20);  // processes may report any value
    if (count != 0) writer_.lose(process.row(), table, reason, static_cast<int64_t>(std::min(count, kMost)));
  };
  for (const Table table : {Table::kDispatch, Table::kCopy, Table::kFill, Table::kSync}) {
    const auto at = static_cast<size_t>(table);
    const auto missing = [at](const ProcessState::Commands& commands) {
      const uint64_t found = commands.rows[at] + commands.said[at];
      return commands.issued[at] > found ? commands.issued[at] - found : 0;
    };
    // Records dropped because the pool was full are missing too. A process that exited cleanly misses nothing else.
    uint64_t elsewhere = at < dropped.size() ? dropped[at] : 0;
    for (const auto& [slot, state] : processes_)
      if (state && state->commands().ended) elsewhere -= std::min(elsewhere, missing(state->commands()));
    for (const auto& [slot, state] : processes_) {
      if (!state || !state->commands().known || state->commands().ended) continue;
      const uint64_t all = missing(state->commands()), counted = std::min(all, elsewhere);
      elsewhere -= counted;
      lose(*state, table, event::LossReason::kKilled, all - counted);
    }
  }
  for (const auto& [slot, state] : processes_) {
    if (!state) continue;
    const ProcessState::Commands& commands = state->commands();
    if (commands.filtered > commands.filtered_said)
      lose(*state, Table::kDispatch, event::LossReason::kFiltered, commands.filtered - commands.filtered_said);
  }
}

int64_t Decoder::process_row(uint32_t pid) const {
  int64_t row = 0;
  for (const auto& [slot, state] : processes_)
    if (state && state->facts().pid == pid && pid != 0) row = state->facts().row;
  return row;
}

std::vector<ProcessFacts> Decoder::processes() const {
  std::vector<ProcessFacts> facts;
  for (const auto& [slot, state] : processes_)
    if (state && state->facts().pid != 0) facts.push_back(state->facts());
  return facts;
}

}  // namespace tacho::decode
