// The keys of an architecture in YAML (architectures.h).
#include "metric/catalog/architectures.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "metric/catalog/string_store.h"
#include "metric/catalog/yaml/yaml_reader.h"

namespace tacho::metric {
namespace {

enum class FactKind : uint8_t { kNumber, kBytes, kText };

/// A key of an architecture's section; section "" = a key of the architecture itself.
struct FactKey {
  std::string_view section, key;
  FactKind kind;
};

/// All facts there are. One more needs a line here and one in docs/metrics.md.
constexpr FactKey kFactKeys[] = {
    {"", "chip", FactKind::kText},
    {"caches", "l1", FactKind::kBytes},
    {"caches", "l2", FactKind::kBytes},
    {"caches", "last", FactKind::kBytes},
    {"l2", "banks", FactKind::kNumber},
    {"l2", "dies", FactKind::kNumber},
    {"per_cycle", "fp32", FactKind::kNumber},
    {"per_cycle", "fp64", FactKind::kNumber},
    {"per_cycle", "fp16", FactKind::kNumber},
    {"per_cycle", "i32", FactKind::kNumber},
    {"per_cycle", "mma_f16", FactKind::kNumber},
    {"per_cycle", "mma_bf16", FactKind::kNumber},
    {"per_cycle", "mma_tf32", FactKind::kNumber},
    {"per_cycle", "mma_f8", FactKind::kNumber},
    {"per_cycle", "mma_i8", FactKind::kNumber},
    {"per_cycle", "mma_f64", FactKind::kNumber},
    {"per_cycle", "l1", FactKind::kNumber},
    {"per_cycle", "shared", FactKind::kNumber},
    {"typical", "name", FactKind::kText},
    {"typical", "multiprocessors", FactKind::kNumber},
    {"typical", "warp_size", FactKind::kNumber},
    {"typical", "threads_per_sm", FactKind::kNumber},
    {"typical", "blocks_per_sm", FactKind::kNumber},
    {"typical", "registers_per_sm", FactKind::kNumber},
    {"typical", "shared_per_sm", FactKind::kNumber},
    {"typical", "shared_reserved", FactKind::kNumber},
};

constexpr std::string_view kFeatures[] = {"wgmma", "mma_f64_k16", "tcgen05"};

std::optional<double> parsed_number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value) || value < 0)
    return std::nullopt;
  return value;
}

/// "16 KiB", "8 MiB", "4096".
std::optional<double> parsed_bytes(std::string_view word) {
  double unit = 1;
  if (word.ends_with(" KiB")) unit = 1024;
  if (word.ends_with(" MiB")) unit = 1024 * 1024;
  if (unit != 1) word.remove_suffix(4);
  const std::optional<double> count = parsed_number(word);
  return count.has_value() ? std::optional(*count * unit) : std::nullopt;
}

class ArchitectureReader : YamlReader {
 public:
  ArchitectureReader(std::string_view vendor, const ArchitectureLookup& built_in, const FormulaCheck& check)
      : built_in_(built_in), check_(check) {
    defaults_.vendor = store(vendor);
    defaults_.strings = strings_;
  }

  Result<std::vector<Architecture>> read(std::span<const CatalogFile> files) {
    std::vector<std::pair<const CatalogFile*, YAML::Node>> roots;
    for (const CatalogFile& file : files) {
      TACHO_ASSIGN(const YAML::Node root, load_document(file.text, file.name));
      if (root.IsMap()) roots.emplace_back(&file, root);
    }
    for (const auto& [file, root] : roots) {
      file_ = file->name;
      const YAML::Node node = root["defaults"];
      if (!node.IsDefined()) continue;
      if (is_user())
        return fail_at(node, "defaults stand in tacho's own catalog only; write \"like\" in an architecture");
      TACHO_TRY(guarded(file_, [&] { return read_keys(node, "defaults", defaults_, false); }));
    }
    for (const auto& [file, root] : roots) {
      file_ = file->name;
      if (const YAML::Node node = root["architectures"]; node.IsDefined())
        TACHO_TRY(guarded(file_, [&] { return read_list(node); }));
    }
    return std::move(list_);
  }

 private:
  bool is_user() const { return built_in_ != nullptr; }
  std::string_view store(std::string_view text) { return strings_->intern(text); }

  Result<std::string_view> stored(const YAML::Node& node, std::string_view what) {
    TACHO_ASSIGN(const std::string word, text(node, what));
    if (word.empty()) return fail_at(node, "{} is empty", what);
    return store(word);
  }

  std::optional<Architecture> known(std::string_view name) const {
    for (const Architecture& one : list_)
      if (one.name == name) return one;
    return is_user() ? built_in_(name) : std::nullopt;
  }

  Status read_list(const YAML::Node& node) {
    TACHO_ASSIGN(const Fields entries, fields(node, "architectures"));
    for (const auto& [name, details] : entries) {
      if (name.empty() || !std::all_of(name.begin(), name.end(), is_identifier_char))
        return fail_at(details, "an architecture's name must be letters, digits and _, not \"{}\"", name);
      if (std::any_of(list_.begin(), list_.end(), [&word = name](const auto& one) { return one.name == word; }))
        return fail_at(details, "the architecture \"{}\" stands here for the second time", name);
      if (!details.IsMap())
        return fail_at(details, "the architecture \"{}\" must be a mapping of keys to values", name);
      const YAML::Node like = details["like"];
      std::optional<Architecture> own = is_user() ? built_in_(name) : std::nullopt;
      Architecture architecture = own.value_or(defaults_);
      if (like.IsDefined()) {
        TACHO_ASSIGN(const std::string base, text(like, "like"));
        if (own.has_value())
          return fail_at(like, "the built-in architecture \"{}\" cannot become like another one", name);
        std::optional<Architecture> found = known(base);
        if (!found.has_value())
          return fail_at(like, "there is no architecture \"{}\" that \"{}\" could be like", base, name);
        architecture = std::move(*found);
        architecture.like.insert(architecture.like.begin(), architecture.name);
        architecture.names.clear();
      } else if (is_user() && !own.has_value()) {
        return fail_at(details, "the new architecture \"{}\" needs \"like\" with the name of one that tacho has", name);
      }
      architecture.name = store(name);
      architecture.strings = strings_;
      TACHO_TRY(read_keys(details, fmt::format("the architecture \"{}\"", name), architecture, true));
      list_.push_back(std::move(architecture));
    }
    return {};
  }

  Status read_keys(const YAML::Node& node, const std::string& what, Architecture& out, bool named) {
    Words known_keys = {"counters", "roofline", "matrix", "features"};
    for (const FactKey& key : kFactKeys) known_keys.emplace(key.section.empty() ? key.key : key.section);
    if (named)
      for (const char* key : {"like", "family", "names", "metrics", "rename", "recorded_as", "missing_sysinfo"})
        known_keys.emplace(key);
    TACHO_ASSIGN(const Fields keys, fields(node, what, known_keys));
    for (const auto& [key, value] : keys) {
      if (key == "like") continue;
      if (key == "family") {
        TACHO_ASSIGN(out.family, stored(value, key));
      } else if (key == "names") {
        TACHO_TRY(read_names(value, out.names));
      } else if (key == "metrics") {
        TACHO_ASSIGN(const std::string word, text(value, key));
        if (word != "None") return fail_at(value, "metrics can be None alone: there is no catalog for {}", what);
        out.metrics = false;
      } else if (key == "rename") {
        if (is_user())
          return fail_at(value, "a rename stands in tacho's own catalog only: its formulas have their names already");
        TACHO_TRY(read_renames(value, key, out.renames));
      } else if (key == "recorded_as") {
        TACHO_TRY(read_renames(value, key, out.recorded_as));
      } else if (key == "missing_sysinfo") {
        TACHO_ASSIGN(const Fields entries, fields(value, key));
        for (const auto& [column, entry] : entries) {
          TACHO_ASSIGN(const std::string_view word, stored(entry, column));
          set(out.missing_sysinfo, store(column), word);
        }
      } else if (key == "features") {
        out.features.clear();
        TACHO_ASSIGN(const std::vector<std::string> list, words(value, key));
        for (const std::string& word : list) {
          if (std::find(std::begin(kFeatures), std::end(kFeatures), word) == std::end(kFeatures))
            return fail_at(value, "there is no feature \"{}\"; known are {}", word, joined(kFeatures));
          out.features.push_back(store(word));
        }
      } else if (key == "counters") {
        TACHO_TRY(read_counters(value, out.counters));
      } else if (key == "matrix") {
        TACHO_TRY(read_matrix(value, out.matrix));
      } else if (key == "roofline") {
        TACHO_TRY(read_roofline(value, out.roofline));
      } else {
        TACHO_TRY(read_facts(key, value, out.facts));
      }
    }
    return {};
  }

  template <typename List>
  static std::string joined(const List& list) {
    std::string out;
    for (const std::string_view word : list) out += fmt::format("{}{}", out.empty() ? "" : ", ", word);
    return out;
  }

  static void set(std::vector<std::pair<std::string_view, std::string_view>>& list, std::string_view key,
                  std::string_view value) {
    for (auto& [name, old] : list)
      if (name == key) {
        old = value;
        return;
      }
    list.emplace_back(key, value);
  }

  Status read_names(const YAML::Node& node, std::vector<std::string_view>& out) {
    out.clear();
    TACHO_ASSIGN(const std::vector<std::string> list, words(node, "names"));
    for (const std::string& word : list) {
      const auto legal = [](char c) { return is_identifier_char(c) && !(c >= 'A' && c <= 'Z'); };
      if (word.empty() || !std::all_of(word.begin(), word.end(), legal))
        return fail_at(node, "a name of an architecture must be lower-case letters, digits and _, not \"{}\"", word);
      out.push_back(store(word));
    }
    return {};
  }

  Status read_renames(const YAML::Node& node, std::string_view what, std::vector<Rename>& out) {
    out.clear();
    TACHO_ASSIGN(const Fields names, fields(node, what));
    for (const auto& [from, to] : names) {
      TACHO_ASSIGN(const std::string_view target, stored(to, what));
      out.push_back({store(from), target});
    }
    return {};
  }

  Status read_facts(const std::string& section, const YAML::Node& node, std::vector<ArchitectureFact>& out) {
    const auto put = [&](const FactKey& key, const YAML::Node& value) -> Status {
      TACHO_ASSIGN(const std::string word, text(value, key.key));
      ArchitectureFact fact;
      fact.name = store(key.section.empty() ? std::string(key.key) : fmt::format("{}.{}", key.section, key.key));
      if (key.kind == FactKind::kText) {
        if (word.empty()) return fail_at(value, "{} is empty", key.key);
        fact.number = std::numeric_limits<double>::quiet_NaN();
        fact.text = store(word);
      } else {
        const bool bytes = key.kind == FactKind::kBytes;
        const std::optional<double> number = bytes ? parsed_bytes(word) : parsed_number(word);
        if (!number.has_value())
          return fail_at(value, "{} must be {}, not \"{}\"", key.key,
                         bytes ? "a number of bytes such as 16 KiB" : "a number from 0 on", word);
        fact.number = *number;
      }
      std::erase_if(out, [&](const ArchitectureFact& old) { return old.name == fact.name; });
      out.push_back(fact);
      return {};
    };
    Words known_keys;
    for (const FactKey& key : kFactKeys) {
      if (key.section.empty() && key.key == section) return put(key, node);
      if (key.section == section) known_keys.emplace(key.key);
    }
    TACHO_ASSIGN(const Fields keys, fields(node, section, known_keys));
    for (const auto& [name, value] : keys)
      for (const FactKey& key : kFactKeys)
        if (key.section == section && key.key == name) TACHO_TRY(put(key, value));
    return {};
  }

  /// "SQ: 8" is a block with 8 slots, "SQC: SQ" means counters that share them.
  Status read_counters(const YAML::Node& node, std::vector<CounterBlock>& out) {
    TACHO_ASSIGN(const Fields entries, fields(node, "counters"));
    for (const auto& [prefix, value] : entries) {
      TACHO_ASSIGN(const std::string word, text(value, prefix));
      CounterBlock block{store(prefix), store(prefix), 0};
      if (const std::optional<double> slots = parsed_number(word); slots.has_value()) {
        if (*slots < 1 || *slots > 1000 || std::floor(*slots) != *slots)
          return fail_at(value, "a block has 1 to 1000 slots for counters, not \"{}\"", word);
        block.slots = static_cast<int>(*slots);
      } else {
        const auto shared =
            std::find_if(out.begin(), out.end(), [&](const CounterBlock& each) { return each.prefix == word; });
        if (shared == out.end())
          return fail_at(value, "\"{}\" is neither a number of slots nor a block that stands before {}", word, prefix);
        block.block = shared->block;
        block.slots = shared->slots;
      }
      std::erase_if(out, [&](const CounterBlock& old) { return old.prefix == block.prefix; });
      for (CounterBlock& each : out)
        if (each.block == block.prefix) each.slots = block.slots;
      out.push_back(block);
    }
    return {};
  }

  Status read_matrix(const YAML::Node& node, std::vector<MatrixInstruction>& out) {
    out.clear();
    if (!node.IsSequence()) return fail_at(node, "matrix must be a list of instructions");
    for (const auto& item : node) {
      TACHO_ASSIGN(const Fields keys, fields(item, "a matrix instruction",
                                             {"element", "instruction", "builtin", "operand", "shape", "per_cycle"}));
      for (const char* key : {"element", "builtin", "operand", "shape", "per_cycle"})
        if (find(keys, key) == nullptr) return fail_at(item, "a matrix instruction needs \"{}\"", key);
      MatrixInstruction one;
      TACHO_ASSIGN(one.element, stored(*find(keys, "element"), "element"));
      if (std::find(std::begin(kElements), std::end(kElements), one.element) == std::end(kElements))
        return fail_at(*find(keys, "element"), "there is no element \"{}\"; known are {}", one.element,
                       joined(kElements));
      TACHO_ASSIGN(one.builtin, stored(*find(keys, "builtin"), "builtin"));
      one.instruction = one.builtin;
      if (const YAML::Node* entry = find(keys, "instruction"); entry != nullptr) {
        TACHO_ASSIGN(one.instruction, stored(*entry, "instruction"));
      }
      TACHO_ASSIGN(one.operand, stored(*find(keys, "operand"), "operand"));
      TACHO_TRY(read_shape(*find(keys, "shape"), one));
      TACHO_ASSIGN(const std::string rate, text(*find(keys, "per_cycle"), "per_cycle"));
      const std::optional<double> per_cycle = parsed_number(rate);
      if (!per_cycle.has_value())
        return fail_at(*find(keys, "per_cycle"), "per_cycle must be a number from 0 on, not \"{}\"", rate);
      one.per_cycle = *per_cycle;
      out.push_back(one);
    }
    return {};
  }

  /// "32x32x8": M x N x K.
  Status read_shape(const YAML::Node& node, MatrixInstruction& out) {
    TACHO_ASSIGN(const std::string word, text(node, "shape"));
    const char* at = word.data();
    const char* const end = at + word.size();
    for (uint32_t* size : {&out.m, &out.n, &out.k}) {
      const bool last = size == &out.k;
      const auto [next, error] = std::from_chars(at, end, *size);
      const bool separated = last ? next == end : next != end && *next == 'x';
      if (error != std::errc() || *size == 0 || *size > 1024 || !separated)
        return fail_at(node, "shape must be M x N x K as in 32x32x8, not \"{}\"", word);
      at = last ? next : next + 1;
    }
    return {};
  }

  Result<std::string_view> formula(const YAML::Node& node, std::string_view what) {
    TACHO_ASSIGN(const std::string source, text(node, what));
    if (source.empty()) return fail_at(node, "{} is empty; write None where there is no value", what);
    if (source == "None") return std::string_view();
    if (check_)
      if (const Status checked = check_(source); !checked.has_value())
        return fail_at(node, "{}", checked.error().message);
    return store(source);
  }

  Status read_roofline(const YAML::Node& node, RooflineModel& out) {
    if (node.IsScalar() && node.Scalar() == "None") {
      out = {};
      return {};
    }
    TACHO_ASSIGN(
        const Fields keys,
        fields(node, "roofline", {"definition", "names", "flops", "matrix_flops", "l1", "l2", "hbm", "lds", "compat"}));
    for (const auto& [key, value] : keys) {
      if (key == "definition") {
        TACHO_ASSIGN(out.definition, stored(value, key));
      } else if (key == "names") {
        TACHO_ASSIGN(const Fields names, fields(value, key, {"hbm", "l2", "l1", "lds", "valu", "mfma"}));
        for (const auto& [roof, text] : names) {
          TACHO_ASSIGN(const std::string_view name, stored(text, roof));
          set(out.names, store(roof), name);
        }
      } else if (key == "flops" || key == "matrix_flops") {
        TACHO_ASSIGN(const Fields types, fields(value, key));
        for (const auto& [type, terms] : types) TACHO_TRY(read_flops(type, key == "matrix_flops", terms, out.flops));
        if (out.flops.size() > kMostFlopKinds)
          return fail_at(value, "a roofline has at most {} units and data types", kMostFlopKinds);
      } else if (key == "compat") {
        TACHO_ASSIGN(const Fields entries, fields(value, key, {"definition", "flops", "l1", "l2", "hbm"}));
        if (const YAML::Node* definition = find(entries, "definition"); definition != nullptr) {
          TACHO_ASSIGN(out.compat_definition, stored(*definition, "definition"));
        }
        if (const YAML::Node* l1 = find(entries, "l1"); l1 != nullptr) {
          TACHO_ASSIGN(out.compat_l1, formula(*l1, "l1"));
        }
        if (const YAML::Node* l2 = find(entries, "l2"); l2 != nullptr) {
          TACHO_ASSIGN(out.compat_l2, formula(*l2, "l2"));
        }
        if (const YAML::Node* flops = find(entries, "flops"); flops != nullptr) {
          TACHO_ASSIGN(out.compat_flops, formula(*flops, "flops"));
        }
        if (const YAML::Node* hbm = find(entries, "hbm"); hbm != nullptr) {
          TACHO_ASSIGN(const Fields series, fields(*hbm, "hbm"));
          for (const auto& [name, bytes] : series) {
            TACHO_ASSIGN(const std::string_view text, formula(bytes, name));
            set(out.compat_hbm, store(name), text);
          }
        }
      } else {
        std::string_view& bytes = key == "l1" ? out.l1 : key == "l2" ? out.l2 : key == "hbm" ? out.hbm : out.lds;
        TACHO_ASSIGN(bytes, formula(value, key));
      }
    }
    return {};
  }

  /// A term is a formula, or {formula: ..., optional: true}, or {first_of: [...], optional: true}; a type has one or a
  /// list.
  Status read_flops(const std::string& type, bool matrix, const YAML::Node& node, std::vector<FlopTerms>& out) {
    auto place = std::find_if(out.begin(), out.end(),
                              [&](const FlopTerms& each) { return each.type == type && each.matrix == matrix; });
    if (place == out.end()) place = out.insert(place, {store(type), matrix, {}});
    place->terms.clear();
    for (const YAML::Node& item : items(node)) {
      FlopTerm& term = place->terms.emplace_back();
      if (item.IsScalar()) {
        TACHO_ASSIGN(term.formulas.emplace_back(), formula(item, type));
      } else {
        TACHO_ASSIGN(const Fields keys, fields(item, "a term", {"formula", "first_of", "optional"}));
        const YAML::Node* one = find(keys, "formula");
        const YAML::Node* several = find(keys, "first_of");
        if ((one == nullptr) == (several == nullptr)) return fail_at(item, "a term needs \"formula\" or \"first_of\"");
        for (const YAML::Node& each : items(one != nullptr ? *one : *several)) {
          TACHO_ASSIGN(term.formulas.emplace_back(), formula(each, type));
        }
        if (const YAML::Node* optional = find(keys, "optional"); optional != nullptr) {
          TACHO_ASSIGN(term.optional, truth(*optional, "optional"));
        }
      }
      if (term.formulas.empty() ||
          std::any_of(term.formulas.begin(), term.formulas.end(), [](std::string_view text) { return text.empty(); }))
        return fail_at(item, "a term of {} needs a formula; write [] where the architecture has none", type);
    }
    return {};
  }

  const ArchitectureLookup& built_in_;
  const FormulaCheck& check_;
  std::shared_ptr<StringStore> strings_ = std::make_shared<StringStore>();
  Architecture defaults_;
  std::vector<Architecture> list_;
};

}  // namespace

Result<std::vector<Architecture>> read_architectures(std::span<const CatalogFile> files, std::string_view vendor,
                                                     const FormulaCheck& check) {
  const ArchitectureLookup none;
  return ArchitectureReader(vendor, none, check).read(files);
}

Result<std::vector<Architecture>> read_more_architectures(std::span<const CatalogFile> files,
                                                          const ArchitectureLookup& built_in,
                                                          const FormulaCheck& check) {
  return ArchitectureReader({}, built_in, check).read(files);
}

}  // namespace tacho::metric
