// Profiles: the host's time and the devices' under the stacks that spent or launched it, with the dictionary that
// profiles.proto shares between them. All elements with index 0 stand for "none".
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/stacks/frame_index.h"
#include "analysis/stacks/stacks.h"
#include "format/otlp/parts.h"

namespace tacho::format::otlp {
namespace {

using analysis::NumberSet;
using analysis::StackFrame;
using analysis::StackPart;
using event::Table;

// Numbers things of `kParts` numbers from 1 on, in the order of their first use, at 8 bytes each and their own.
template <size_t kParts>
class Numbered {
 public:
  using Key = std::array<uint32_t, kParts>;
  uint32_t number(const Key& key) {
    const auto next = static_cast<uint32_t>(keys_.size());
    const uint32_t known = places_.find_or_add(
        hash(key), next, [&](uint32_t i) { return hash(keys_[i]); }, [&](uint32_t i) { return keys_[i] == key; });
    if (known != NumberSet::kNone) return known + 1;
    keys_.push_back(key);
    return next + 1;
  }
  /// Of a number from 1 on.
  const Key& operator[](uint32_t number) const { return keys_[number - 1]; }
  const std::deque<Key>& keys() const { return keys_; }

 private:
  static size_t hash(const Key& key) {
    size_t value = 0;
    for (const uint32_t part : key) value = analysis::hash_of_pair(static_cast<uint32_t>(value), part) + (value >> 32);
    return value;
  }
  std::deque<Key> keys_;
  NumberSet places_;
};

class Dictionary {
 public:
  Dictionary() { text(""); }

  /// Keeps the text itself where it is new.
  uint32_t keep(std::string&& word) {
    const auto next = static_cast<uint32_t>(words_.size());
    const auto hash = [](const std::string& of) { return std::hash<std::string_view>()(of); };
    const uint32_t known = word_places_.find_or_add(
        hash(word), next, [&](uint32_t i) { return hash(words_[i]); }, [&](uint32_t i) { return words_[i] == word; });
    if (known != NumberSet::kNone) return known;
    words_.push_back(std::move(word));
    return next;
  }
  uint32_t text(std::string_view word) { return keep(std::string(word)); }
  uint32_t location(StackFrame&& frame) {
    const uint32_t attribute_index = attribute(frame);
    const uint32_t mapping = frame.module.empty() ? 0 : mappings_.number({keep(std::move(frame.module))});
    const uint32_t name = keep(std::move(frame.name));
    const uint32_t function = functions_.number({name, keep(std::move(frame.file))});
    const auto line = static_cast<uint64_t>(std::max<int64_t>(frame.line, 0));
    return locations_.number(
        {mapping, function, attribute_index, static_cast<uint32_t>(line), static_cast<uint32_t>(line >> 32)});
  }
  /// The stack with `location` as its leaf and `outer` (0 = none) around it. Only those of stack() are written.
  uint32_t node(uint32_t outer, uint32_t location) { return nodes_.number({outer, location}); }
  uint32_t stack(uint32_t node) { return stacks_.number({node}); }

  void put(JsonFileWriter& json) const {
    json.name("dictionary").begin_object();
    zero(json, "mappingTable");
    each(
        mappings_, [&](const auto& one) { put_index(json, "filenameStrindex", one[0]); }, json);
    zero(json, "locationTable");
    each(
        locations_, [&](const auto& one) { put_location(json, one); }, json);
    zero(json, "functionTable");
    each(
        functions_,
        [&](const auto& one) {
          put_index(json, "nameStrindex", one[0]);
          put_index(json, "filenameStrindex", one[1]);
        },
        json);
    // As many zeros as strict readers want; bytes of identifiers are hexadecimal in OTLP's JSON.
    json.name("linkTable").begin_array().begin_object();
    json.member("traceId", std::string(32, '0')).member("spanId", std::string(16, '0')).end_object().end_array();
    json.name("stringTable").begin_array();
    for (const std::string& word : words_) json.value(std::string_view(word));
    json.end_array();
    zero(json, "attributeTable");
    each(
        attributes_,
        [&](const auto& one) {
          put_index(json, "keyStrindex", one[0]);
          json.name("value").begin_object().member("stringValue", words_[one[1]]);
          json.end_object();
        },
        json);
    zero(json, "stackTable");
    each(
        stacks_, [&](const auto& one) { put_stack(json, one[0]); }, json);
    json.end_object();
  }

 private:
  uint32_t attribute(const StackFrame& frame) {
    std::string_view key = "tacho.frame.part", value = analysis::to_string(frame.part);
    if (frame.part == StackPart::kPython || frame.part == StackPart::kNative) {
      key = "profile.frame.type";
      value = frame.part == StackPart::kPython ? "cpython" : "native";
    }
    const uint32_t key_index = text(key);
    return attributes_.number({key_index, text(value)});
  }
  static void put_index(JsonFileWriter& json, JsonLiteral name, int64_t index) {
    if (index != 0) json.member(name, index);
  }
  static void zero(JsonFileWriter& json, JsonLiteral table) {
    json.name(table).begin_array().begin_object().end_object();
  }
  template <typename Numbers, typename Put>
  static void each(const Numbers& of, Put put, JsonFileWriter& json) {
    for (const auto& key : of.keys()) {
      json.begin_object();
      put(key);
      json.end_object();
    }
    json.end_array();
  }
  void put_location(JsonFileWriter& json, const Numbered<5>::Key& one) const {
    const auto& [mapping, function, attribute, low, high] = one;
    put_index(json, "mappingIndex", mapping);
    json.name("lines").begin_array().begin_object().member("functionIndex", static_cast<int64_t>(function));
    if (const uint64_t line = uint64_t{high} << 32 | low; line > 0)
      put_integer(json, "line", static_cast<int64_t>(line));
    json.end_object().end_array();
    json.name("attributeIndices").begin_array().value(static_cast<int64_t>(attribute)).end_array();
  }
  void put_stack(JsonFileWriter& json, uint32_t leaf) const {
    json.name("locationIndices").begin_array();
    for (uint32_t at = leaf; at != 0; at = nodes_[at][0]) json.value(static_cast<int64_t>(nodes_[at][1]));
    json.end_array();
  }

  std::deque<std::string> words_;
  NumberSet word_places_;
  Numbered<1> mappings_;    // name
  Numbered<2> functions_;   // name, file
  Numbered<2> attributes_;  // key, value
  Numbered<5> locations_;   // mapping, function, attribute, line (its lower half, its upper half)
  Numbered<2> nodes_;       // outer node, location
  Numbered<1> stacks_;      // leaves
};

class ProfilesWriter {
 public:
  ProfilesWriter(const Parts& parts, const ExportOptions& options, JsonFileWriter& json)
      : parts_(parts), options_(options), json_(json) {}

  Result<bool> run() {
    for (int64_t process = 0; process < std::max<int64_t>(parts_.trace().rows(Table::kProcess), 1); ++process)
      if (options_.process == 0 || options_.process == process) TACHO_TRY(one_process(process));
    options_.remark_forgotten(forgotten_);
    if (!begun_) return false;
    json_.end_array();
    dictionary_.put(json_);
    json_.end_object().end_line();
    return true;
  }

 private:
  Status one_process(int64_t process) {
    analysis::StackOptions wanted;
    wanted.process = process;
    wanted.recorded = false;  // samples alone are CPU time
    TACHO_ASSIGN(analysis::StackTree tree, analysis::stack_tree(parts_.trace(), wanted));
    forgotten_ += tree.forgotten;
    if (tree.host_ns == 0 && tree.gpu_ns == 0) return {};
    if (!begun_) json_.begin_object().name("resourceProfiles").begin_array();
    begun_ = true;
    json_.begin_object();
    parts_.put_process(json_, process);
    json_.name("scopeProfiles").begin_array().begin_object();
    Parts::put_scope(json_);
    json_.name("profiles").begin_array();
    const std::vector<uint32_t> nodes = to_dictionary(tree);
    if (tree.host_ns > 0)
      profile(tree, nodes, tree.wall ? tree.cpu ? "cpu or wall" : "wall" : "cpu", &analysis::StackNode::host_ns);
    if (tree.gpu_ns > 0) profile(tree, nodes, "gpu", &analysis::StackNode::gpu_ns);
    json_.end_array().end_object().end_array().end_object();
    return {};
  }

  // Moves the tree's frames, which may be millions, into the dictionary; returns the numbers of its nodes there.
  std::vector<uint32_t> to_dictionary(analysis::StackTree& tree) {
    std::vector<uint32_t> nodes(tree.nodes.size());
    std::vector<uint32_t> locations(tree.frames.size());
    for (size_t i = 1; i < tree.nodes.size(); ++i) locations[tree.nodes[i].frame] = 1;  // used
    for (uint32_t& location : locations) {
      if (location != 0) location = dictionary_.location(std::move(tree.frames.front()));
      tree.frames.pop_front();
    }
    for (size_t i = 1; i < nodes.size(); ++i)
      nodes[i] = dictionary_.node(nodes[tree.nodes[i].parent], locations[tree.nodes[i].frame]);
    return nodes;
  }

  void profile(const analysis::StackTree& tree, const std::vector<uint32_t>& nodes, std::string_view type,
               int64_t analysis::StackNode::*value) {
    json_.begin_object().name("sampleType").begin_object();
    json_.member("typeStrindex", static_cast<int64_t>(dictionary_.text(type)));
    json_.member("unitStrindex", static_cast<int64_t>(dictionary_.text("nanoseconds")));
    json_.end_object().name("samples").begin_array();
    std::vector<std::pair<uint32_t, int64_t>> values;  // by stack
    for (size_t i = 0; i < nodes.size(); ++i)
      if (tree.nodes[i].*value != 0)
        values.emplace_back(nodes[i] == 0 ? 0 : dictionary_.stack(nodes[i]), tree.nodes[i].*value);
    std::sort(values.begin(), values.end());
    for (size_t i = 0; i < values.size();) {
      // Nodes of one stack are one sample: different frames may look alike here.
      const uint32_t stack = values[i].first;
      int64_t sum = 0;
      for (; i < values.size() && values[i].first == stack; ++i) sum += values[i].second;
      json_.begin_object().member("stackIndex", static_cast<int64_t>(stack));
      json_.name("values").begin_array().ready(fmt::format("\"{}\"", sum)).end_array().end_object();
    }
    json_.end_array();
    parts_.put_time(json_, "timeUnixNano", parts_.run().first);
    put_integer(json_, "durationNano", parts_.run().length());
    json_.end_object();
  }

  const Parts& parts_;
  const ExportOptions& options_;
  JsonFileWriter& json_;
  Dictionary dictionary_;
  bool begun_ = false;
  int64_t forgotten_ = 0;
};

}  // namespace

Result<bool> write_profiles(const Parts& parts, const ExportOptions& options, OutputFile& file) {
  JsonFileWriter json(file, kCompactJson);
  return ProfilesWriter(parts, options, json).run();
}

}  // namespace tacho::format::otlp
