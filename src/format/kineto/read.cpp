// Finds the events of a Chrome trace in its JSON (kineto.h).
#include <charconv>
#include <string>

#include "format/json/input.h"
#include "format/kineto/event.h"
#include "format/kineto/kineto.h"
#include "format/kineto/translator.h"

namespace tacho::format::kineto {
namespace {

using event::kUnknown;
using event::Table;
using json::InputWindow;
using json::integer;
namespace column = event::column;

class Reader {
 public:
  Reader(InputWindow& input, trace::TraceWriter& writer) : input_(input), writer_(writer), rows_(writer) {}
  Status run();

 private:
  Status top_level();
  Status events();
  Status error(const JsonTokens& json, const char* what) const;
  Status cut_off() const;
  Status member(const std::string& key);
  Status whole_value(std::string& text);
  void device_properties(std::string_view text);

  InputWindow& input_;
  trace::TraceWriter& writer_;
  Translator rows_;
  bool seen_events_ = false;
  uint64_t count_ = 0;
};

Status Reader::error(const JsonTokens& json, const char* what) const {
  const auto at = static_cast<uint64_t>(json.at() - input_.begin()) + input_.offset();
  return fail("{}: not valid JSON near byte {}: {}", input_.path(), at, what);
}

Status Reader::cut_off() const {
  TACHO_TRY(Status(input_.status()));
  if (static_cast<size_t>(input_.end() - input_.begin()) >= InputWindow::kLongest)
    return fail("{}: one event at byte {} is longer than {} MiB", input_.path(), input_.offset(),
                InputWindow::kLongest >> 20);
  return fail("{}: the file is cut off ({} events were read before its end)", input_.path(), count_);
}

// Reads the events of an array after its '['.
Status Reader::events() {
  Event event;
  bool first = true;
  while (true) {
    JsonTokens json(input_.begin(), input_.end());
    while (true) {
      char c = json.peek();
      if (c == ',' && !first) {
        json.step();
        c = json.peek();
      }
      if (c == ']') {
        json.step();
        input_.consume(json.at());
        return {};
      }
      if (json.at_end()) break;
      if (c != '{') return error(json, "an event was expected");
      const char* const start = json.at();
      const JsonOutcome outcome = parse_event(json, event);
      if (outcome == JsonOutcome::kBad) return error(json, json.what());
      if (outcome == JsonOutcome::kMore) {
        json = JsonTokens(start, input_.end());
        break;
      }
      first = false;
      ++count_;
      rows_.take(event);
      input_.consume(json.at());
    }
    // Only the start of a value is left; keeps a comma already passed. more() moves the text, so json ends.
    const bool nothing_left = json.at_end();
    if (!input_.more()) {
      if (input_.status() && input_.at_end() && nothing_left && count_ > 0) {
        // Chrome's own format lets the closing bracket be missing: tracers that were killed leave such files.
        writer_.note(0, event::NoteSeverity::kWarning,
                     "the JSON ends without closing its array: its writer was probably killed");
        input_.consume(input_.end());
        return {};
      }
      return cut_off();
    }
  }
}

// The whole value at the input's place; it must fit the window, so only for small values.
Status Reader::whole_value(std::string& text) {
  while (true) {
    JsonTokens json(input_.begin(), input_.end());
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
    int64_t id = kUnknown;
    Translator::Property property;
    while (json.peek() == '"') {
      std::string_view key, word;
      std::string buffer;
      bool escaped;
      if (json.raw_string(key, escaped) != JsonOutcome::kOk || json.expect(':') != JsonOutcome::kOk) return;
      if (key == "name" && json.peek() == '"') {
        if (json.string(word, buffer) != JsonOutcome::kOk) return;
        property.name = word;
      } else if (key == "id" && json.peek() != '"' && json.peek() != '{' && json.peek() != '[') {
        if (json.word(word) != JsonOutcome::kOk) return;
        integer(word, id);
      } else if ((key == "numSms" || key == "totalGlobalMem") && json.peek() != '"' && json.peek() != '{' &&
                 json.peek() != '[') {
        if (json.word(word) != JsonOutcome::kOk) return;
        integer(word, key == "numSms" ? property.units : property.memory);
      } else if (json.skip() != JsonOutcome::kOk) {
        return;
      }
      if (json.peek() == ',') json.step();
    }
    if (json.expect('}') != JsonOutcome::kOk) return;
    if (id != kUnknown) rows_.describe_device(id, std::move(property));
    if (json.peek() == ',') json.step();
  }
}

Status Reader::member(const std::string& key) {
  if (key == "traceEvents") {
    while (true) {
      JsonTokens json(input_.begin(), input_.end());
      const char c = json.peek();
      if (c == '[') {
        json.step();
        input_.consume(json.at());
        seen_events_ = true;
        return events();
      }
      if (!json.at_end()) return error(json, "traceEvents is not an array");
      if (!input_.more()) return cut_off();
    }
  }
  std::string text;
  TACHO_TRY(whole_value(text));
  if (key == "deviceProperties") device_properties(text);
  if (key == "distributedInfo") {
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
    if (const int64_t rank = number("\"rank\""); rank != kUnknown)
      writer_.update(Table::kProcess, rows_.cpu_process(), column::Process::rank, rank);
    if (const int64_t size = number("\"world_size\""); size != kUnknown)
      writer_.property(Table::kEnd, 0, "kineto.world_size", std::to_string(size));
  }
  if (text.size() <= 200 && !text.empty() && text[0] != '{' && text[0] != '[') {
    if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
    writer_.property(Table::kEnd, 0, "kineto." + key, text);
  }
  return {};
}

Status Reader::top_level() {
  bool first = true;
  while (true) {
    JsonTokens json(input_.begin(), input_.end());
    char c = json.peek();
    if (json.at_end()) {
      if (input_.more()) continue;
      return cut_off();
    }
    if (first) {
      if (c == '[') {
        json.step();
        input_.consume(json.at());
        seen_events_ = true;
        return events();
      }
      if (c != '{') return fail("{}: not a JSON trace: it starts neither with {{ nor with [", input_.path());
      json.step();
      input_.consume(json.at());
      first = false;
      continue;
    }
    if (c == '}') {
      json.step();
      input_.consume(json.at());
      return {};
    }
    if (c == ',') {
      json.step();
      input_.consume(json.at());
      continue;
    }
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
    TACHO_TRY(member(name));
  }
}

Status Reader::run() {
  TACHO_TRY(top_level());
  TACHO_TRY(Status(input_.status()));
  if (!seen_events_) return fail("{}: JSON without traceEvents: not a trace", input_.path());
  TACHO_TRY(rows_.finish());
  writer_.property(Table::kEnd, 0, "source", "Chrome JSON");
  writer_.property(Table::kEnd, 0, "source_file", input_.path());
  return {};
}

}  // namespace

bool accepts(std::string_view path, std::string_view head, bool folder) {
  if (folder) return false;
  const std::string text = json::unpacked_head(head);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || (text[first] != '{' && text[first] != '[')) return false;
  if (text.find("\"rocprofiler-sdk-tool\"") != std::string::npos) return false;
  return text.find("traceEvents") != std::string::npos || text.find("\"ph\"") != std::string::npos ||
         path.ends_with(".json") || path.ends_with(".json.gz");
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
