// Profiles: the host's time and the devices' under the stacks that spent or launched it, with the dictionary that
// profiles.proto shares between them. All elements with index 0 stand for "none".
#include <map>
#include <tuple>
#include <vector>

#include "analysis/stacks/stacks.h"
#include "format/otlp/parts.h"

namespace tacho::format::otlp {
namespace {

using analysis::StackFrame;
using analysis::StackPart;
using event::Table;

class Dictionary {
 public:
  Dictionary() { text(""); }

  int64_t text(std::string_view word) {
    const auto [found, fresh] = texts_.try_emplace(std::string(word), static_cast<int64_t>(texts_.size()));
    if (fresh) ordered_.push_back(&found->first);
    return found->second;
  }
  int64_t location(const StackFrame& frame) {
    const int64_t mapping = frame.module.empty() ? 0 : number(mappings_, text(frame.module));
    const int64_t function = number(functions_, std::pair(text(frame.name), text(frame.file)));
    return number(locations_, Location{mapping, function, frame.line, attribute(frame)});
  }
  /// The stack with `location` as its leaf and `outer` (0 = none) around it. Only those of stack() are written.
  int64_t node(int64_t outer, int64_t location) {
    const auto [found, fresh] = nodes_.try_emplace({outer, location}, static_cast<int64_t>(nodes_.size()) + 1);
    if (fresh) places_.emplace_back(outer, location);
    return found->second;
  }
  int64_t stack(int64_t node) { return number(stacks_, node); }

  void put(JsonFileWriter& json) const {
    json.name("dictionary").begin_object();
    zero(json, "mappingTable");
    each(
        mappings_, [&](int64_t name) { put_index(json, "filenameStrindex", name); }, json);
    zero(json, "locationTable");
    each(
        locations_, [&](const Location& one) { put_location(json, one); }, json);
    zero(json, "functionTable");
    each(
        functions_,
        [&](const auto& one) {
          put_index(json, "nameStrindex", one.first);
          put_index(json, "filenameStrindex", one.second);
        },
        json);
    // As many zeros as strict readers want; bytes of identifiers are hexadecimal in OTLP's JSON.
    json.name("linkTable").begin_array().begin_object();
    json.member("traceId", std::string(32, '0')).member("spanId", std::string(16, '0')).end_object().end_array();
    json.name("stringTable").begin_array();
    for (const std::string* const word : ordered_) json.value(std::string_view(*word));
    json.end_array();
    zero(json, "attributeTable");
    each(
        attributes_,
        [&](const auto& one) {
          put_index(json, "keyStrindex", one.first);
          json.name("value").begin_object().member("stringValue", *ordered_[static_cast<size_t>(one.second)]);
          json.end_object();
        },
        json);
    zero(json, "stackTable");
    each(
        stacks_, [&](int64_t leaf) { put_stack(json, leaf); }, json);
    json.end_object();
  }

 private:
  struct Location {
    int64_t mapping, function, line, attribute;
    auto operator<=>(const Location&) const = default;
  };
  // Numbers from 1 on, in the order of the first use.
  template <typename Key>
  struct Numbered {
    std::map<Key, int64_t> numbers;
    std::vector<Key> keys;
  };
  template <typename Key>
  static int64_t number(Numbered<Key>& of, const Key& key) {
    const auto [found, fresh] = of.numbers.try_emplace(key, static_cast<int64_t>(of.keys.size()) + 1);
    if (fresh) of.keys.push_back(key);
    return found->second;
  }
  int64_t attribute(const StackFrame& frame) {
    std::string_view key = "tacho.frame.part", value = analysis::to_string(frame.part);
    if (frame.part == StackPart::kPython || frame.part == StackPart::kNative) {
      key = "profile.frame.type";
      value = frame.part == StackPart::kPython ? "cpython" : "native";
    }
    return number(attributes_, std::pair(text(key), text(value)));
  }
  static void put_index(JsonFileWriter& json, JsonLiteral name, int64_t index) {
    if (index != 0) json.member(name, index);
  }
  static void zero(JsonFileWriter& json, JsonLiteral table) {
    json.name(table).begin_array().begin_object().end_object();
  }
  template <typename Key, typename Put>
  static void each(const Numbered<Key>& of, Put put, JsonFileWriter& json) {
    for (const Key& key : of.keys) {
      json.begin_object();
      put(key);
      json.end_object();
    }
    json.end_array();
  }
  static void put_location(JsonFileWriter& json, const Location& one) {
    put_index(json, "mappingIndex", one.mapping);
    json.name("lines").begin_array().begin_object().member("functionIndex", one.function);
    if (one.line > 0) put_integer(json, "line", one.line);
    json.end_object().end_array();
    json.name("attributeIndices").begin_array().value(one.attribute).end_array();
  }
  void put_stack(JsonFileWriter& json, int64_t leaf) const {
    json.name("locationIndices").begin_array();
    for (int64_t at = leaf; at != 0; at = places_[static_cast<size_t>(at) - 1].first)
      json.value(places_[static_cast<size_t>(at) - 1].second);
    json.end_array();
  }

  std::map<std::string, int64_t, std::less<>> texts_;
  std::vector<const std::string*> ordered_;
  Numbered<int64_t> mappings_;                        // by name
  Numbered<std::pair<int64_t, int64_t>> functions_;   // name, file
  Numbered<std::pair<int64_t, int64_t>> attributes_;  // key, value
  Numbered<Location> locations_;
  Numbered<int64_t> stacks_;  // leaves
  std::map<std::pair<int64_t, int64_t>, int64_t> nodes_;
  std::vector<std::pair<int64_t, int64_t>> places_;  // by node: outer node, location
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
    TACHO_ASSIGN(const analysis::StackTree tree, analysis::stack_tree(parts_.trace(), wanted));
    forgotten_ += tree.forgotten;
    if (tree.host_ns == 0 && tree.gpu_ns == 0) return {};
    if (!begun_) json_.begin_object().name("resourceProfiles").begin_array();
    begun_ = true;
    json_.begin_object();
    parts_.put_process(json_, process);
    json_.name("scopeProfiles").begin_array().begin_object();
    Parts::put_scope(json_);
    json_.name("profiles").begin_array();
    std::vector<int64_t> nodes(tree.nodes.size());  // in the dictionary
    for (size_t i = 1; i < nodes.size(); ++i)
      nodes[i] = dictionary_.node(nodes[tree.nodes[i].parent], dictionary_.location(tree.frames[tree.nodes[i].frame]));
    if (tree.host_ns > 0)
      profile(tree, nodes, tree.wall ? tree.cpu ? "cpu or wall" : "wall" : "cpu", &analysis::StackNode::host_ns);
    if (tree.gpu_ns > 0) profile(tree, nodes, "gpu", &analysis::StackNode::gpu_ns);
    json_.end_array().end_object().end_array().end_object();
    return {};
  }

  void profile(const analysis::StackTree& tree, const std::vector<int64_t>& nodes, std::string_view type,
               int64_t analysis::StackNode::*value) {
    json_.begin_object().name("sampleType").begin_object();
    json_.member("typeStrindex", dictionary_.text(type)).member("unitStrindex", dictionary_.text("nanoseconds"));
    json_.end_object().name("samples").begin_array();
    // Nodes of one stack are one sample: different frames may look alike here.
    std::map<int64_t, int64_t> sums;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (tree.nodes[i].*value != 0) sums[nodes[i] == 0 ? 0 : dictionary_.stack(nodes[i])] += tree.nodes[i].*value;
    for (const auto& [stack, sum] : sums) {
      json_.begin_object().member("stackIndex", stack);
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
