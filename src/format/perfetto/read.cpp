// Reads Perfetto traces (perfetto.h): two passes, packet by packet.
#include <fmt/format.h>

#include "analysis/trim.h"
#include "format/perfetto/packet_source.h"
#include "format/perfetto/perfetto.h"
#include "format/perfetto/read/clocks.h"
#include "format/perfetto/read/documents.h"
#include "format/perfetto/read/gpu_events.h"
#include "format/perfetto/read/lines.h"
#include "format/perfetto/read/sequences.h"
#include "format/perfetto/read/survey.h"

namespace tacho::format::perfetto {
namespace {

using event::kUnknown;
using event::LossReason;
using event::NoteSeverity;
using event::Table;

// One of the traces in a file: what its two passes share.
struct Document {
  Document(trace::TraceWriter& writer, imported::ImportTracker& tracker, imported::ScopeId scope)
      : lines(writer, tracker, scope),
        rows(writer),
        events(writer, tracker, lines, rows),
        gpu(writer, tracker, lines, rows, events, submissions),
        survey(lines, clocks, submissions) {}

  TraceLines lines;
  SliceRows rows;
  TrackEvents events;
  KeyIndex<SubmittingCall> submissions;
  GpuEvents gpu;
  SnapshotClocks clocks;
  Survey survey;
  Sequences sequences;
};

class TraceReader {
 public:
  TraceReader(std::string path, trace::TraceWriter& writer)
      : path_(std::move(path)), writer_(writer), tracker_(writer) {}
  Status run();

 private:
  static constexpr size_t kMostDocuments = 1024;

  template <typename Take>
  Result<std::unique_ptr<PacketSource>> each_packet(Take take);
  void take(const PacketHead& head, SequenceState& state);
  void sample(const PacketHead& head, const SequenceState& state, int64_t time);
  int64_t trace_time(const PacketHead& head, SequenceState& state);
  void clock_rows();
  void unread(uint32_t event);
  void tell(const PacketSource& source);

  std::string path_;
  trace::TraceWriter& writer_;
  imported::ImportTracker tracker_;
  std::vector<std::unique_ptr<Document>> documents_;
  Document* at_ = nullptr;  // whose packet is at hand
  InternedRoom room_;
  uint64_t without_path_ = 0, damaged_ = 0;
  bool too_many_documents_ = false;
};

// Calls take(document, head) for each packet; returns the source at its end.
template <typename Take>
Result<std::unique_ptr<PacketSource>> TraceReader::each_packet(Take take) {
  TACHO_ASSIGN(auto source, PacketSource::open(path_));
  DocumentStarts starts;
  size_t number = 0;
  std::string_view packet;
  PacketHead head;
  while (source->next(packet)) {
    read_head(packet, head);
    if (head.event == packet_compressed || head.event == packet_zstd_compressed) {
      source->enter(head.body, head.event == packet_zstd_compressed);
      continue;
    }
    if (starts.begins(head)) {
      if (number + 1 < kMostDocuments)
        ++number;
      else
        too_many_documents_ = true;
    }
    if (number == documents_.size())
      documents_.push_back(std::make_unique<Document>(writer_, tracker_, number == 0 ? 0 : tracker_.new_scope()));
    take(*documents_[number], head);
  }
  return source;
}

int64_t TraceReader::trace_time(const PacketHead& head, SequenceState& state) {
  uint32_t clock = 0;
  int64_t time = at_->sequences.time(head, state, clock);
  if (time == kUnknown || clock == 0 || clock == at_->clocks.primary()) return time;
  if (!at_->clocks.convert(head.sequence, clock, time, time)) ++without_path_;
  return time;
}

void TraceReader::sample(const PacketHead& head, const SequenceState& state, int64_t time) {
  int64_t pid = 0, tid = 0;
  uint64_t stack = 0;
  for (WireFields field(head.body); field.next();) {
    if (field.number() == sample_pid) pid = static_cast<int32_t>(field.value());
    if (field.number() == sample_tid) tid = static_cast<int32_t>(field.value());
    if (field.number() == sample_callstack) stack = field.value();
  }
  const int64_t* const row = stack != 0 && state.interned != nullptr ? state.interned->stacks.find(stack) : nullptr;
  // Without a stack it is a record of samples that were lost or skipped.
  if (time == kUnknown || row == nullptr) return writer_.lose(0, Table::kSample, LossReason::kBadInput, 1);
  writer_.add(event::row::Sample{.track = at_->lines.thread_track_of(head.machine, pid, tid != 0 ? tid : pid),
                                 .start = time,
                                 .duration = state.sample_period,
                                 .dim = *row});
}

// Packets that tacho does not read, unless they are about the recording and not about the program.
void TraceReader::unread(uint32_t event) {
  switch (event) {
    case 0:
    case packet_process_tree:
    case packet_trace_config:
    case packet_trace_stats:
    case packet_synchronization_marker:
    case packet_process_descriptor:
    case packet_track_descriptor:
    case packet_gpu_info:
    case packet_system_info:
    case 46:  // trigger
    case 47:  // packages_list
    case 63:  // gpu_log
    case 67:  // cpu_info
    case 69:  // service_event
    case 72:  // extension_descriptor
    case 78:  // ui_state
    case packet_trace_uuid:
    case 107:  // remote_clock_sync
    case 113:  // clone_snapshot_trigger
    case 123:  // user_list
    case 124:  // trace_provenance
    case 126:  // trace_attributes
      return;
    case packet_ftrace_events:
      return tracker_.unread("packets of ftrace events");
    default:
      tracker_.unread(fmt::format("packets of kind {}", event));
  }
}

void TraceReader::take(const PacketHead& head, SequenceState& state) {
  if (!head.interned.empty()) {
    if (state.interned == nullptr) state.interned = std::make_unique<InternedData>(writer_, room_);
    state.interned->add(head.interned);
  }
  if (head.event == packet_clock_snapshot) return at_->sequences.snapshot(head);
  if (head.event == packet_thread_descriptor) {
    state.thread_uuid = thread_uuid_of(head);
    for (WireFields field(head.body); field.next();)
      if (field.number() == thread_reference_us) state.thread_us = field.signed_value();
    return;
  }
  const EventPacket packet{.time = trace_time(head, state),
                           .machine = head.machine,
                           .sequence = head.sequence,
                           .trusted_pid = head.trusted_pid,
                           .interned = state.interned.get(),
                           .defaults = &state.events,
                           .thread_uuid = state.thread_uuid};
  switch (head.event) {
    case packet_track_event:
      return at_->events.take(packet, head.body);
    case packet_render_stage:
      return at_->gpu.render_stage(packet, head.body);
    case packet_gpu_counters:
      return at_->gpu.counters(packet, head.body);
    case packet_perf_sample:
      return sample(head, state, packet.time);
    default:
      return unread(head.event);
  }
}

// Trace time is the primary clock's; the others follow from the snapshots.
void TraceReader::clock_rows() {
  const SnapshotClocks& clocks = at_->clocks;
  if (const std::string_view name = builtin_clock::name(clocks.primary()); name.empty())
    writer_.note(
        0, NoteSeverity::kWarning,
        fmt::format("the times are those of the file's clock {}, which tacho does not know", clocks.primary()));
  else if (at_ == documents_.front().get())
    writer_.property(Table::kEnd, 0, "clock", name);
  const int64_t process = documents_.size() > 1 ? at_->lines.main_process() : 0;
  clocks.each_moment([&](const SnapshotClocks::BuiltinMoment& moment) {
    if (moment.monotonic == kUnknown && moment.realtime == kUnknown) return;
    writer_.add(event::row::Clock{.process = process,
                                  .raw = moment.primary,
                                  .monotonic = moment.monotonic,
                                  .boottime = moment.boottime,
                                  .realtime = moment.realtime});
  });
}

// What was lost, and where.
void TraceReader::tell(const PacketSource& source) {
  const auto warn = [&](const std::string& text) { writer_.note(0, NoteSeverity::kWarning, text); };
  if (!source.ending().empty()) {
    const std::string text = fmt::format("the trace is not whole: {}", source.ending());
    warn(text);
    writer_.property(Table::kEnd, 0, analysis::kCutOff, text);
  }
  if (const std::string foreign = source.foreign_bytes(); !foreign.empty()) warn(foreign);
  if (source.refused() > 0)
    warn(fmt::format("{} packet{} could not be read, the first for this reason: {}", source.refused(),
                     source.refused() == 1 ? "" : "s", source.refusal()));
  if (without_path_ > 0)
    warn(fmt::format("{} event{} of a clock that no snapshot ties to the others; such times stand as they are",
                     without_path_, without_path_ == 1 ? " has a time" : "s have times"));
  uint64_t dropped = 0, without_state = 0, more = room_.left_out;
  for (const auto& document : documents_) {
    dropped += document->sequences.dropped();
    without_state += document->sequences.without_state();
    more += document->sequences.too_many() + document->lines.left_out() + document->clocks.left_out();
  }
  if (documents_.size() > 1)
    writer_.note(0, NoteSeverity::kInfo,
                 fmt::format("the file holds {} traces, one behind the other; each has its own processes and devices",
                             documents_.size()));
  if (too_many_documents_)
    warn(fmt::format("the file holds more than {} traces: those behind are read as if they were the last one's",
                     kMostDocuments));
  if (dropped > 0)
    warn(fmt::format("packets were dropped in {} place{} before they reached the file", dropped,
                     dropped == 1 ? "" : "s"));
  if (without_state > 0)
    warn(fmt::format("{} packets refer to earlier ones that the file does not have, and were left out", without_state));
  if (more > 0)
    warn(fmt::format("the trace has more names, tracks or sequences than tacho keeps: {} were left out", more));
  const auto lose = [&](LossReason reason, uint64_t count) {
    if (count > 0) writer_.lose(0, Table::kEnd, reason, static_cast<int64_t>(count));
  };
  lose(LossReason::kBadInput, source.refused() + damaged_ + more);
  lose(LossReason::kVendor, dropped + without_state);
}

Status TraceReader::run() {
  {
    TACHO_ASSIGN(const auto source,
                 each_packet([](Document& document, const PacketHead& head) { document.survey.see(head); }));
    if (source->packets() == 0)
      return fail("{}: {}", path_, source->ending().empty() ? "a Perfetto trace without packets" : source->ending());
  }
  for (const auto& document : documents_) {
    TACHO_TRY(document->survey.finish());
    document->lines.begin_events(documents_.size() > 1);
    if (document->lines.has_dispatch_counters()) document->rows.keep_dispatches();
  }
  TACHO_ASSIGN(const auto source, each_packet([&](Document& document, const PacketHead& head) {
                 at_ = &document;
                 if (head.damaged) ++damaged_;
                 if (SequenceState* const state = document.sequences.take(head)) take(head, *state);
               }));
  for (const auto& document : documents_) {
    at_ = document.get();
    TACHO_TRY(document->events.finish());
    TACHO_TRY(document->rows.finish());
    document->gpu.finish();
    document->lines.finish();
    clock_rows();
  }
  tell(*source);
  tracker_.finish();
  writer_.property(Table::kEnd, 0, "source", "Perfetto");
  writer_.property(Table::kEnd, 0, "source_file", path_);
  return {};
}

}  // namespace

bool accepts(std::string_view /*path*/, std::string_view head, bool folder) {
  return !folder && begins_with_packets(head);
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  return TraceReader(path, writer).run();
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

}  // namespace tacho::format::perfetto
