// What a sequence of packets has interned: names by number, with what tacho has read from them.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "event/schema.h"
#include "trace/write/writer.h"

namespace tacho::format::perfetto {

/// The annotations and arguments that tacho reads.
enum class FactKey : uint8_t {
  kNone,
  kCorrelation,
  kDispatchId,
  kGraph,
  kGraphNode,
  kArguments,
  kAgent,
  kAgentType,
  kSourceAgent,
  kTargetAgent,
  kDevice,
  kContext,
  kQueue,
  kStream,
  kTid,
  kScratch,
  kSharedAll,
  kSharedStatic,
  kSharedDynamic,
  kRegisters,
  kAccumRegisters,
  kScalarRegisters,
  kGroup,
  kGrid,
  kBytes,
  kResult,
  kPayload,
  kDomain,
  kCategory,
  kOpenAtExit,
  kEndNotRecorded,
  kMemoryKind,
  kProcessId,
  kArchitecture,
  kCollective,  // one of the words that describe a collective
};
FactKey fact_key(std::string_view name);

/// The name of an annotation or argument. `text`: where the name is one that tacho reads, as long as the program runs.
struct FactName {
  FactKey key = FactKey::kNone;
  std::string_view text;
};
FactName fact_name(std::string_view text);

/// What an event's category says about its row.
struct CategoryWords {
  enum class Kind : uint8_t { kOther, kDispatch, kCopy, kFill, kCall, kMarker, kDeviceMarker, kSync, kOverhead };
  int64_t text = 0;  // string row
  Kind kind = Kind::kOther;
  event::Domain domain = event::Domain::kUnknown;  // of calls
};
/// `text`: one category, or several separated by commas, of which the first known one decides.
CategoryWords category_words(std::string_view text);

/// "Agent-4", "GPU-0", "GPU 0".
struct AgentLabel {
  enum class Word : uint8_t { kNone, kAgent, kCpu, kGpu, kOther };
  Word word = Word::kNone;
  int64_t number = event::kUnknown;
};
AgentLabel agent_label(std::string_view text);

struct EventName {
  int64_t text = 0;  // string row
  event::Domain domain = event::Domain::kUnknown;
  event::CopyDirection direction = event::CopyDirection::kUnknown;
  event::MemoryKind from = event::MemoryKind::kUnknown, to = event::MemoryKind::kUnknown;
  event::SyncKind sync = event::SyncKind::kUnknown;
};
/// Reads a name; `text` stays 0.
EventName name_words(std::string_view text);

/// A hardware queue or stage of a GPU: both share one space of numbers.
struct StageWords {
  enum class Kind : uint8_t { kTask, kKernel, kCopy, kFill, kAnnotation, kMark };
  int64_t text = 0;  // string row
  Kind kind = Kind::kTask;
  EventName words;
};
StageWords stage_words(std::string_view name, uint64_t category);

struct ComputeKernel {
  int64_t name = 0, architecture = 0;  // string rows
  int64_t registers = event::kUnknown, shared_static = event::kUnknown, scratch = event::kUnknown;
};

struct AnnotationText {
  int64_t text = 0;  // string row
  AgentLabel agent;
  bool cpu = false;  // "CPU"
};

/// Rows by number. Small numbers are places in a vector, as writers count from 1.
template <typename T>
class IidTable {
 public:
  const T* find(uint64_t iid) const {
    if (iid < dense_.size()) return dense_[iid].set ? &dense_[iid].value : nullptr;
    const auto found = sparse_.find(iid);
    return found == sparse_.end() ? nullptr : &found->second;
  }
  bool contains(uint64_t iid) const { return find(iid) != nullptr; }
  void put(uint64_t iid, const T& value) {
    // The vector grows with the number of entries, not with what a number may be: many tables hold one each.
    if (iid >= dense_.size() && iid < entries_ * 2 + 8 && sparse_.empty()) dense_.resize(iid + 1);
    ++entries_;
    if (iid < dense_.size())
      dense_[iid] = {value, true};
    else
      sparse_.insert_or_assign(iid, value);
  }
  void clear() {
    std::vector<Slot>().swap(dense_);
    sparse_ = {};
    entries_ = 0;
  }

 private:
  struct Slot {
    T value{};
    bool set = false;
  };
  std::vector<Slot> dense_;
  tsl::robin_map<uint64_t, T> sparse_;
  uint64_t entries_ = 0;
};

/// How many entries all sequences together may keep: more are counted and left out.
struct InternedRoom {
  static constexpr uint64_t kMost = 1 << 20, kMostDescriptorBytes = 16 << 20;
  uint64_t entries = 0, left_out = 0, descriptor_bytes = 0;
  int64_t counter_scopes = 0;
  bool take() {
    if (entries >= kMost) return ++left_out, false;
    return ++entries, true;
  }
};

/// The interned data of one sequence.
class InternedData {
 public:
  InternedData(trace::TraceWriter& writer, InternedRoom& room) : writer_(writer), room_(room) {}
  ~InternedData() { clear(); }
  InternedData(const InternedData&) = delete;
  InternedData& operator=(const InternedData&) = delete;

  void clear();
  void add(std::string_view message);

  IidTable<CategoryWords> categories;
  IidTable<EventName> names;
  IidTable<FactName> annotation_names;
  IidTable<FactKey> argument_names;
  IidTable<AnnotationText> annotation_texts;
  IidTable<int64_t> functions, source_paths;  // string rows
  struct MappedPath {
    int64_t text = 0;  // string row
    bool script = false;
  };
  IidTable<MappedPath> paths, mappings;
  IidTable<int64_t> frames, stacks;  // rows of these tables
  IidTable<int64_t> contexts;        // pids
  IidTable<StageWords> stages;
  IidTable<ComputeKernel> kernels;
  /// A descriptor of counters: whose numbers its counters have, and of which GPU they are.
  struct CounterSource {
    int64_t scope = 0, gpu = event::kUnknown;
    std::string message;  // until the reader has made rows of it
  };
  IidTable<CounterSource> counter_sources;

 private:
  void leaf(uint32_t field, std::string_view entry);
  void entry(uint32_t field, std::string_view entry);
  void frame(std::string_view entry);
  void stack(std::string_view entry);
  void mapping(std::string_view entry);
  void kernel(std::string_view entry);
  void counters(std::string_view entry);
  bool take() {
    if (!room_.take()) return false;
    ++taken_;
    return true;
  }

  trace::TraceWriter& writer_;
  InternedRoom& room_;
  uint64_t taken_ = 0, descriptor_bytes_ = 0;
};

/// An argument of a kernel or launch (ExtraComputeArg): a number, or a text.
struct ComputeArgument {
  FactKey key = FactKey::kNone;
  bool is_number = false;
  int64_t number = event::kUnknown;
  std::string_view text;
  AnnotationText known;  // of a text that the sequence has interned
};
ComputeArgument compute_argument(std::string_view message, const InternedData& interned);

}  // namespace tacho::format::perfetto
