// Writes Perfetto packets of one machine on its own sequence: framing, interning, delta time stamps, descriptors. Knows
// nothing about traces.
//
// A slice costs two packets. The first one, byte for byte (field number and wire type, length, value):
//
//   0a LEN                                 TracePacket
//     40 DELTA                             timestamp: ns since the last packet, clock 64 of this sequence
//     50 01                                trusted_packet_sequence_id
//     68 02                                sequence_flags: needs the interned names
//     5a LEN                               track_event
//       48 01                              type: slice begin
//       58 UUID                            track
//       18 IID  50 IID                     category, name
//       22 LEN 08 IID 18 N ...             annotations
//       f9 02 8 bytes                      flow
//     62 LEN ...                           interned_data, where names appear for the first time
#pragma once

#include <cstdint>
#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files/output_file.h"

namespace tacho::format::perfetto {

/// Keys of GpuInfo's extra facts under which tacho tells what tracks call the GPU, "Agent 1", and its own number, where
/// the file counts otherwise.
inline constexpr std::string_view kGpuAgent = "tacho.agent", kGpuIndex = "tacho.index";

/// Field numbers of perfetto/protos, named message_field; only those that v46 and current versions share. GpuField has
/// those of later versions.
enum Field : uint32_t {
  packet_clock_snapshot = 6,
  packet_timestamp = 8,
  packet_sequence = 10,
  packet_track_event = 11,
  packet_interned_data = 12,
  packet_flags = 13,
  packet_timestamp_clock = 58,
  packet_defaults = 59,
  packet_track_descriptor = 60,
  packet_perf_sample = 66,
  defaults_timestamp_clock = 58,
  snapshot_clock = 1,
  snapshot_primary = 2,
  clock_id = 1,
  clock_timestamp = 2,
  clock_incremental = 3,
  track_uuid = 1,
  track_name = 2,
  track_process = 3,
  track_thread = 4,
  track_parent = 5,
  track_counter = 8,
  process_pid = 1,
  process_cmdline = 2,
  process_name = 6,
  thread_pid = 1,
  thread_tid = 2,
  thread_name = 5,
  counter_unit = 3,
  counter_unit_name = 6,
  event_category_iids = 3,
  event_annotations = 4,
  event_type = 9,
  event_name_iid = 10,
  event_track = 11,
  event_name = 23,
  event_counter_value = 30,
  event_double_value = 44,
  event_flow_ids = 47,
  annotation_name_iid = 1,
  annotation_bool = 2,
  annotation_uint = 3,
  annotation_int = 4,
  annotation_double = 5,
  annotation_string = 6,
  annotation_string_iid = 17,
  interned_categories = 1,
  interned_event_names = 2,
  interned_annotation_names = 3,
  interned_functions = 5,
  interned_frames = 6,
  interned_callstacks = 7,
  interned_mapping_paths = 17,
  interned_mappings = 19,
  interned_annotation_strings = 29,
  interned_iid = 1,
  interned_text = 2,
  frame_iid = 1,
  frame_function = 2,
  frame_mapping = 3,
  frame_rel_pc = 4,
  callstack_iid = 1,
  callstack_frames = 2,
  mapping_iid = 1,
  mapping_path = 7,
  sample_pid = 2,
  sample_tid = 3,
  sample_callstack = 4,
  sample_mode = 5,
};

/// Field numbers of Perfetto's model of GPUs and machines, likewise. Each says the version that reads it first; older
/// ones skip it. Without a version: v46.
enum GpuField : uint32_t {
  packet_system_info = 45,
  packet_gpu_counters = 52,
  packet_render_stage = 53,
  packet_machine = 98,
  packet_gpu_info = 128,     // v55
  system_machine_name = 17,  // v58
  process_labels = 8,
  event_gpu_correlation = 3000,  // v55
  gpu_correlation_submissions = 1,
  interned_contexts = 23,
  interned_specifications = 24,
  interned_counter_descriptors = 47,  // v55
  interned_kernels = 1000,            // v55
  interned_argument_names = 1001,     // v55
  context_pid = 2,
  context_api = 3,  // CUDA and HIP: v55
  specification_name = 2,
  specification_text = 3,
  specification_category = 4,
  kernel_mangled = 2,
  kernel_demangled = 3,
  kernel_architecture = 4,
  counter_descriptor = 2,
  counter_descriptor_gpu = 3,
  descriptor_specs = 1,
  descriptor_groups = 6,  // v55
  spec_id = 1,
  spec_name = 2,
  spec_text = 3,
  spec_numerators = 7,
  spec_denominators = 8,
  spec_groups = 10,
  spec_direction = 11,  // v56
  counter_group_id = 1,
  counter_group_name = 2,
  counter_group_counters = 4,
  gpu_event_counters = 2,
  gpu_event_descriptor_iid = 4,  // v55
  gpu_counter_id = 1,
  gpu_counter_double = 3,
  stage_event_id = 1,
  stage_duration = 2,
  stage_context = 5,
  stage_gpu = 11,
  stage_queue_iid = 13,
  stage_stage_iid = 14,
  stage_name = 17,        // v55
  stage_kernel_iid = 19,  // v55
  stage_name_iid = 20,    // v55
  stage_launch = 21,      // v55
  launch_grid = 1,
  launch_group = 2,
  launch_arguments = 3,
  argument_name_iid = 1,
  argument_int = 3,
  argument_uint = 4,
  argument_double = 5,
  argument_string = 6,
  argument_string_iid = 7,
  gpu_info_gpus = 1,
  gpu_name = 1,
  gpu_vendor = 2,
  gpu_model = 3,
  gpu_architecture = 4,
  gpu_uuid = 5,
  gpu_extra = 6,
  gpu_pci = 7,
  gpu_extra_key = 1,
  gpu_extra_value = 2,
};
/// InternedGpuRenderStageSpecification.category.
inline constexpr uint32_t kStageOther = 0, kStageCompute = 2;
/// GpuCounterDescriptor's groups of counters, of which the page of kernels shows the last.
inline constexpr uint32_t kGroupSystem = 1, kGroupMemory = 5, kGroupCompute = 6;
/// GpuCounterSpec.value_direction: a value holds from its time on.
inline constexpr uint32_t kForwardsLooking = 2;

enum class CounterUnit : uint32_t { kNone = 0, kNanoseconds = 1, kCount = 2, kBytes = 3 };

/// The annotations, category and name of an event, encoded and ready to copy into packets.
class EventBody {
 public:
  /// With keep = false an event consists only of its category and name.
  void keep_annotations(bool keep) { annotations_ = keep; }
  void category(uint32_t iid) { number_field(event_category_iids, iid); }
  void name(uint32_t iid) { number_field(event_name_iid, iid); }
  void name(std::string_view text);
  void add_uint(uint32_t name_iid, uint64_t value) { number(name_iid, annotation_uint, value); }
  void add_int(uint32_t name_iid, int64_t value) { number(name_iid, annotation_int, static_cast<uint64_t>(value)); }
  void add_bool(uint32_t name_iid, bool value) { number(name_iid, annotation_bool, value ? 1 : 0); }
  void add_interned(uint32_t name_iid, uint32_t string_iid) { number(name_iid, annotation_string_iid, string_iid); }
  void add_double(uint32_t name_iid, double value);
  void add_string(uint32_t name_iid, std::string_view value);
  /// Appends the content of another EventBody.
  void add_bytes(std::string_view bytes) {
    if (annotations_) bytes_.append(bytes);
  }
  /// Appends a message as a field of the event.
  void add_message(uint32_t field, std::string_view message);
  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  void number_field(uint32_t field, uint64_t value);
  void number(uint32_t name_iid, uint32_t field, uint64_t value);

  std::string bytes_;
  bool annotations_ = true;
};

/// A file of packets, and the numbers that all of its sequences take from one row.
struct PacketFile {
  OutputFile& file;
  uint64_t next_track = 1;    // ids are small so that they take few bytes
  uint32_t next_context = 1;  // Perfetto tells contexts apart by number alone
};

/// Writes the packets of one sequence into a file, which must outlive this object. Event times must not go backwards;
/// times that do are moved up.
class Packets {
 public:
  /// `machine`: the number of the machine that the packets are about; 0 = the file has only one.
  explicit Packets(PacketFile& file, uint32_t machine = 0)
      : shared_(file), file_(file.file), machine_(machine), sequence_(machine == 0 ? 1 : machine) {}

  struct ClockValues {
    int64_t boottime, monotonic, raw, realtime;  // ns; negative = not known
  };
  /// Writes the first packet: clears the sequence and defines its clock, which starts at `at.boottime`.
  void begin(const ClockValues& at);
  void clock_snapshot(const ClockValues& at);

  uint64_t new_track() { return shared_.next_track++; }
  uint32_t new_context() { return shared_.next_context++; }
  /// `labels`: words for the process beside its name.
  void process(uint64_t uuid, int64_t pid, std::string_view name, std::string_view command,
               std::span<const std::string> labels = {});
  void thread(uint64_t uuid, int64_t pid, int64_t tid, std::string_view name);
  void track(uint64_t uuid, uint64_t parent, std::string_view name);
  void counter(uint64_t uuid, uint64_t parent, std::string_view name, CounterUnit unit, std::string_view unit_name);

  /// The number of `text` in an interned field (interned_*); defines it in the file on first use. `text` must stay
  /// valid.
  uint32_t intern(uint32_t kind, std::string_view text);
  /// Assigns a number to a text that the caller remembers itself.
  uint32_t intern_fresh(uint32_t kind, std::string_view text);
  /// Adds an interned message; the caller assigns its number.
  void intern_message(uint32_t kind, std::string_view message);

  void slice_begin(int64_t time, uint64_t track, std::string_view body, std::string_view more, bool flow,
                   uint64_t flow_id) {
    event(time, 1, track, body, more, flow, flow_id);
  }
  void slice_end(int64_t time, uint64_t track) { event(time, 2, track, {}, {}, false, 0); }
  void instant(int64_t time, uint64_t track, std::string_view body, std::string_view more, bool flow,
               uint64_t flow_id) {
    event(time, 3, track, body, more, flow, flow_id);
  }
  void counter_value(int64_t time, uint64_t track, int64_t value);
  void counter_value(int64_t time, uint64_t track, double value);
  void sample(int64_t time, int64_t pid, int64_t tid, uint32_t callstack);
  /// A packet with the message `field` at `time`, its content in parts. It carries what was interned since the last.
  void message(int64_t time, uint32_t field, std::initializer_list<std::string_view> parts);
  /// A packet without a time of its own about the machine: field packet_gpu_info or packet_system_info.
  void fact(uint32_t field, std::string_view content);

 private:
  void event(int64_t time, uint32_t type, uint64_t track, std::string_view body, std::string_view more, bool flow,
             uint64_t flow_id);
  void packet(std::string_view bytes);
  void descriptor(const std::string& track_descriptor);
  uint64_t delta(int64_t time);

  // The fields by which a reader finds the state of the sequence.
  void add_sequence(protozero::pbf_writer& out) const;

  PacketFile& shared_;
  OutputFile& file_;
  uint32_t machine_, sequence_;
  int64_t last_ = 0, first_ = 0;
  std::string interned_;  // for the next packet
  struct Index {
    uint32_t next = 1;
    std::unordered_map<std::string_view, uint32_t> numbers;
  };
  std::unordered_map<uint32_t, Index> indexes_;
  std::string scratch_;
};

}  // namespace tacho::format::perfetto
