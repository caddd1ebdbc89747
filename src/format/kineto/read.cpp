// Finds the events of a Chrome trace in its JSON (kineto.h).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "format/json/input.h"
#include "format/kineto/event.h"
#include "format/kineto/kineto.h"
#include "format/kineto/translator.h"
#include "format/source/names.h"

namespace tacho::format::kineto {
namespace {

using event::kUnknown;
using event::Table;
using json::InputWindow;
using json::integer;
namespace column = event::column;

// Members of events: an object that begins with one is an event and no document.
bool is_event_member(std::string_view key) {
  static constexpr std::string_view kMembers[] = {"ph", "name", "cat", "pid", "tid",   "ts", "tts", "dur",
                                                  "id", "args", "bp",  "s",   "cname", "sf", "id2", "tdur"};
  return std::find(std::begin(kMembers), std::end(kMembers), key) != std::end(kMembers);
}

// Members of documents that tracers write before their events, which may begin far behind the first bytes of the file.
constexpr std::string_view kDocumentMembers[] = {
    "\"schemaVersion\"", "\"deviceProperties\"",  "\"distributedInfo\"",     "\"displayTimeUnit\"",    "\"otherData\"",
    "\"stackFrames\"",   "\"systemTraceEvents\"", "\"baseTimeNanoseconds\"", "\"baseTimeNanosecond\"", "\"traceName\""};

class Reader {
 public:
  Reader(InputWindow& input, trace::TraceWriter& writer) : input_(input), writer_(writer), rows_(writer, unescaped_) {}
  Status run();

 private:
  // Documents, and lists in lists, may be nested this deep.
  static constexpr int kDeepest = 4;

  enum class Behind : uint8_t { kNothing, kDocument, kEvents, kOther };

  JsonTokens tokens() { return JsonTokens(input_.begin(), input_.end(), &unescaped_); }
  Result<char> next_character();
  Status document(int depth);
  Status object(int depth);
  Status events(int depth, bool in_list);
  Status further_documents();
  Result<Behind> what_follows(bool first);
  Status error(const JsonTokens& json, const char* what) const;
  Status shape(std::string_view what) const;
  Status cut_off() const;
  Status member(const std::string& key, int depth);
  Status whole_value(std::string& text);
  Status trace_events(int depth);
  void device_properties(std::string_view text);
  void distributed_info(const std::string& text);
  void ended_early();
  void document_ends();

  InputWindow& input_;
  trace::TraceWriter& writer_;
  Translator rows_;
  bool unescaped_ = false;    // the file's writer does not escape backslashes
  bool seen_events_ = false;  // the document has a list of events
  bool told_early_end_ = false;
  uint64_t count_ = 0, no_events_ = 0;
  // What the document at hand says about its rank.
  int64_t rank_ = kUnknown;
  int64_t last_rank_ = kUnknown;  // that of the last document that tells
  std::vector<std::pair<int64_t, imported::DeviceHint>> devices_;
};

Status Reader::error(const JsonTokens& json, const char* what) const {
  const auto at = static_cast<uint64_t>(json.at() - input_.begin()) + input_.offset();
  if (what == JsonTokens::kTooDeep) return fail("{}: near byte {}: {}", input_.path(), at, what);
  return fail("{}: not valid JSON near byte {}: {}", input_.path(), at, what);
}

// Valid JSON, but no trace.
Status Reader::shape(std::string_view what) const {
  return fail("{}: {} (at byte {}): not a trace", input_.path(), what, input_.offset());
}

Status Reader::cut_off() const {
  TACHO_TRY(Status(input_.status()));
  if (static_cast<size_t>(input_.end() - input_.begin()) >= InputWindow::kLongest)
    return fail("{}: one event at byte {} is longer than {} MiB", input_.path(), input_.offset(),
                InputWindow::kLongest >> 20);
  return fail("{}: the file is cut off ({} events were read before its end)", input_.path(), count_);
}

// Chrome's own format lets the closing brackets be missing: tracers that were killed leave such files.
void Reader::ended_early() {
  if (!told_early_end_)
    writer_.note(0, event::NoteSeverity::kWarning,
                 "the JSON ends without closing its array: its writer was probably killed");
  told_early_end_ = true;
  input_.consume(input_.end());
}

// The next character that is not white space, with the input at it; NUL at the end.
Result<char> Reader::next_character() {
  while (true) {
    JsonTokens json = tokens();
    const char c = json.peek();
    if (!json.at_end()) {
      input_.consume(json.at());
      return c;
    }
    if (!input_.more()) {
      TACHO_TRY(Status(input_.status()));
      input_.consume(input_.end());
      return '\0';
    }
  }
}

// Reads the events of a list, whose '[' is passed, or of a file that has one event a line.
Status Reader::events(int depth, bool in_list) {
  Event event;
  bool first = true;
  while (true) {
    JsonTokens json = tokens();
    while (true) {
      char c = json.peek();
      if (c == ',' && !first) {
        json.step();
        c = json.peek();
      }
      if (c == ']' && in_list) {
        json.step();
        input_.consume(json.at());
        return {};
      }
      if (json.at_end()) break;
      const char* const start = json.at();
      if (c == '[' && depth < kDeepest) {
        json.step();
        input_.consume(json.at());
        TACHO_TRY(events(depth + 1, true));
        first = false;
        json = tokens();
        continue;
      }
      if (c != '{') {
        const JsonOutcome outcome = json.skip();
        if (outcome == JsonOutcome::kBad) return error(json, "an event was expected");
        if (outcome == JsonOutcome::kMore) {
          json = JsonTokens(start, input_.end(), &unescaped_);
          break;
        }
        rows_.no_event();
        ++no_events_;
        first = false;
        input_.consume(json.at());
        continue;
      }
      const JsonOutcome outcome = parse_event(json, event);
      if (outcome == JsonOutcome::kBad && event.holds_document && depth < kDeepest) {
        // A list of documents.
        input_.consume(start);
        if (seen_events_ && count_ > 0) rows_.document_begins();
        TACHO_TRY(object(depth + 1));
        first = false;
        json = tokens();
        continue;
      }
      if (outcome == JsonOutcome::kBad && event.holds_document) return shape("documents within documents");
      if (outcome == JsonOutcome::kBad) return error(json, json.what());
      if (outcome == JsonOutcome::kMore) {
        json = JsonTokens(start, input_.end(), &unescaped_);
        break;
      }
      first = false;
      ++count_;
      event.text = {start, static_cast<size_t>(json.at() - start)};
      rows_.take(event);
      input_.consume(json.at());
    }
    // Only the start of a value is left; keeps a comma already passed. more() moves the text, so json ends.
    const bool nothing_left = json.at_end();
    if (!input_.more()) {
      if (!(input_.status() && input_.at_end() && nothing_left && (count_ > 0 || !in_list))) return cut_off();
      if (in_list)
        ended_early();
      else
        input_.consume(input_.end());
      return {};
    }
  }
}

// The whole value at the input's place; it must fit the window, so only for small values.
Status Reader::whole_value(std::string& text) {
  while (true) {
    JsonTokens json = tokens();
    json.skip_space();
    const char* const start = json.at();
    const JsonOutcome outcome = json.skip();
    if (outcome == JsonOutcome::kBad) return error(json, json.what());
    if (outcome == JsonOutcome::kOk) {
      text.assign(start, json.at());
      input_.consume(json.at());
      return {};
    }
    if (!input_.more()) return cut_off();
  }
}

void Reader::device_properties(std::string_view value) {
  std::string text(value);
  text.append(InputWindow::kPadding, '\0');
  JsonTokens json(text.data(), text.data() + value.size());
  if (json.expect('[') != JsonOutcome::kOk) return;
  // [{"id": 0, "name": "...", ...}, ...]
  while (json.peek() == '{') {
    json.step();
    int64_t id = kUnknown, units = 0, memory = 0;
    imported::DeviceHint hint;
    while (json.peek() == '"') {
      std::string_view key, word;
      std::string buffer;
      bool escaped;
      if (json.raw_string(key, escaped) != JsonOutcome::kOk || json.expect(':') != JsonOutcome::kOk) return;
      const char c = json.peek();
      const bool plain = c != '"' && c != '{' && c != '[';
      if ((key == "name" || key == "vendor") && c == '"') {
        if (json.string(word, buffer) != JsonOutcome::kOk) return;
        (key == "name" ? hint.name : hint.vendor) = word;
      } else if (plain && (key == "id" || key == "numSms" || key == "maxComputeUnits" || key == "totalGlobalMem")) {
        if (json.word(word) != JsonOutcome::kOk) return;
        integer(word, key == "id" ? id : key == "totalGlobalMem" ? memory : units);
      } else if (key == "tacho" && c == '{') {
        const char* const start = json.at();
        if (json.skip() != JsonOutcome::kOk) return;
        hint.origin.assign(start, static_cast<size_t>(json.at() - start));
      } else if (json.skip() != JsonOutcome::kOk) {
        return;
      }
      if (json.peek() == ',') json.step();
    }
    if (json.expect('}') != JsonOutcome::kOk) return;
    const bool amd = hint.name.find("AMD") != std::string::npos;
    for (const std::string_view vendor : {"Intel", "NVIDIA", "AMD"})
      if (hint.name.find(vendor) != std::string::npos) hint.vendor = vendor;
    if (units > 0) hint.properties.emplace_back(amd ? "compute_units" : "multiprocessors", std::to_string(units));
    if (memory > 0) hint.properties.emplace_back("memory_bytes", std::to_string(memory));
    if (id != kUnknown && devices_.size() < 4096) devices_.emplace_back(id, std::move(hint));
    if (json.peek() == ',') json.step();
  }
}

void Reader::distributed_info(const std::string& text) {
  const auto number = [&](std::string_view name) {
    const size_t at = text.find(name);
    const size_t colon = at != std::string::npos ? text.find(':', at) : std::string::npos;
    int64_t value = kUnknown;
    if (colon == std::string::npos) return value;
    const char* digits = text.data() + colon + 1;
    while (*digits == ' ') ++digits;
    if (std::from_chars(digits, text.data() + text.size(), value).ec != std::errc() || value < 0) value = kUnknown;
    return value;
  };
  rank_ = number("\"rank\"");
  if (const int64_t size = number("\"world_size\""); size != kUnknown)
    writer_.property(Table::kEnd, 0, "kineto.world_size", std::to_string(size));
}

Status Reader::trace_events(int depth) {
  TACHO_ASSIGN(const char c, next_character());
  if (c == '[') {
    input_.consume(input_.begin() + 1);
    seen_events_ = true;
    if (rank_ != kUnknown && last_rank_ != kUnknown && rank_ != last_rank_) rows_.another_rank();
    return events(depth, true);
  }
  if (c == '{') {
    if (depth >= kDeepest) return shape("traceEvents holds documents within documents");
    TACHO_TRY(object(depth + 1));
    return seen_events_ ? Status() : shape("traceEvents is no list of events");
  }
  if (c == '\0') return cut_off();
  std::string text;
  TACHO_TRY(whole_value(text));
  return shape(text == "null" ? "traceEvents is null" : "traceEvents is no list of events");
}

Status Reader::member(const std::string& key, int depth) {
  if (key == "traceEvents") return trace_events(depth);
  std::string text;
  TACHO_TRY(whole_value(text));
  if (key == "deviceProperties") device_properties(text);
  if (key == "distributedInfo") distributed_info(text);
  if (text.size() <= 200 && !text.empty() && text[0] != '{' && text[0] != '[') {
    if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
    writer_.property(Table::kEnd, 0, "kineto." + key, text);
  }
  return {};
}

// What a document says about its rank holds for the process that it is about, in whatever order it says it.
void Reader::document_ends() {
  if (rank_ != kUnknown) writer_.update(Table::kProcess, rows_.document_process(), column::Process::rank, rank_);
  if (rank_ != kUnknown) last_rank_ = rank_;
  rank_ = kUnknown;
  for (auto& [id, hint] : devices_) rows_.describe_device(id, std::move(hint));
  devices_.clear();
}

Status Reader::object(int depth) {
  input_.consume(input_.begin() + 1);
  while (true) {
    TACHO_ASSIGN(const char c, next_character());
    if (c == '\0') {
      // What was read is whole; only brackets are missing.
      if (!seen_events_ || count_ == 0 || !input_.at_end()) return cut_off();
      ended_early();
      break;
    }
    if (c == '}' || c == ',') {
      input_.consume(input_.begin() + 1);
      if (c == '}') break;
      continue;
    }
    JsonTokens json = tokens();
    std::string_view key;
    bool escaped;
    JsonOutcome outcome = json.raw_string(key, escaped);
    const std::string name(outcome == JsonOutcome::kOk ? key : std::string_view());
    if (outcome == JsonOutcome::kOk) outcome = json.expect(':');
    if (outcome == JsonOutcome::kBad) return error(json, json.what());
    if (outcome == JsonOutcome::kMore) {
      if (input_.more()) continue;
      return cut_off();
    }
    input_.consume(json.at());
    TACHO_TRY(member(name, depth));
  }
  document_ends();
  return {};
}

Status Reader::document(int depth) {
  if (*input_.begin() == '{') return object(depth);
  input_.consume(input_.begin() + 1);
  seen_events_ = true;
  TACHO_TRY(events(depth, true));
  document_ends();
  return {};
}

// What stands at the input's place: white space and NUL are nothing.
Result<Reader::Behind> Reader::what_follows(bool first) {
  char c = '\0';
  while (true) {
    TACHO_ASSIGN(c, next_character());
    if (c != '\0' && !(first && c == ',')) break;
    if (input_.begin() == input_.end()) break;
    input_.consume(input_.begin() + 1);  // padding; a comma whose list lost its beginning
  }
  if (input_.begin() == input_.end()) return Behind::kNothing;
  if (c == '[') return Behind::kDocument;
  if (c != '{') return Behind::kOther;
  while (true) {
    JsonTokens json = tokens();
    json.step();
    std::string_view key;
    bool escaped;
    if (json.peek() == '}') return first ? Behind::kDocument : Behind::kOther;
    const JsonOutcome outcome = json.raw_string(key, escaped);
    if (outcome == JsonOutcome::kOk) return is_event_member(key) ? Behind::kEvents : Behind::kDocument;
    if (outcome == JsonOutcome::kBad || !input_.more()) return first ? Behind::kDocument : Behind::kOther;
  }
}

// Tools append documents to documents, and leave parts of older and longer files behind the end.
Status Reader::further_documents() {
  while (true) {
    TACHO_ASSIGN(const Behind behind, what_follows(false));
    if (behind == Behind::kNothing) return {};
    const uint64_t at = input_.offset(), before = count_;
    Status read;
    if (behind == Behind::kDocument) {
      rows_.document_begins();
      seen_events_ = false;
      read = document(0);
      TACHO_TRY(Status(input_.status()));
      if (read && (count_ > before || seen_events_)) continue;  // a window without events is one, too
    }
    writer_.note(0, event::NoteSeverity::kWarning,
                 count_ > before ? fmt::format("the document at byte {} is read in part: {}", at, read.error().message)
                                 : fmt::format("text after the end at byte {} is not read", at));
    return {};
  }
}

Status Reader::run() {
  TACHO_ASSIGN(const Behind what, what_follows(true));
  switch (what) {
    case Behind::kDocument:
      TACHO_TRY(document(0));
      TACHO_TRY(Status(input_.status()));
      if (!seen_events_) return fail("{}: JSON without traceEvents: not a trace", input_.path());
      TACHO_TRY(further_documents());
      if (count_ == 0 && no_events_ > 0)
        return fail("{}: a list of JSON that holds no event: not a trace", input_.path());
      break;
    case Behind::kEvents:
      TACHO_TRY(events(0, false));  // one a line
      break;
    default:
      return fail("{}: not a JSON trace: it starts neither with {{ nor with [", input_.path());
  }
  TACHO_TRY(Status(input_.status()));
  if (const std::string foreign = input_.foreign_bytes(); !foreign.empty())
    writer_.note(0, event::NoteSeverity::kWarning, foreign);
  TACHO_TRY(rows_.finish());
  writer_.property(Table::kEnd, 0, "source", "Chrome JSON");
  writer_.property(Table::kEnd, 0, "source_file", input_.path());
  return {};
}

}  // namespace

bool accepts(std::string_view path, std::string_view head, bool folder) {
  if (folder) return false;
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  // rocprof writes ",{...}" where it lost the beginning.
  const bool lost_beginning = head[first] == ',' && head.substr(first + 1).starts_with('{');
  if (head[first] != '{' && head[first] != '[' && !lost_beginning) return false;
  const auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  if (has("\"rocprofiler-sdk-tool\"") || has("[pytorch|profiler|execution_trace")) return false;
  return has("traceEvents") || has("\"ph\"") || std::ranges::any_of(kDocumentMembers, has) ||
         without_packing(path).ends_with(".json");
}

Status read_into(const std::string& path, trace::TraceWriter& writer) {
  TACHO_ASSIGN(const std::unique_ptr<InputWindow> input, InputWindow::open(path));
  return Reader(*input, writer).run();
}

Result<std::shared_ptr<const trace::Trace>> read(const std::string& path) {
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(read_into(path, *writer));
  return writer->finish_and_open(path);
}

}  // namespace tacho::format::kineto
