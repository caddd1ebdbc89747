// Encoder (used by the catalog compiler) and decoder (used by load_catalog) of the compact form; they mirror each
// other.
#include "metric/catalog/blob.h"

#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "metric/catalog/string_store.h"

namespace tacho::metric {
namespace {

constexpr std::string_view kMagic = "TCAT0004";

class Encoder {
 public:
  void number(uint64_t value) {
    while (value >= 0x80) {
      out_ += static_cast<char>(static_cast<unsigned char>(value | 0x80));
      value >>= 7;
    }
    out_ += static_cast<char>(static_cast<unsigned char>(value));
  }
  void real(double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i) out_ += static_cast<char>(static_cast<unsigned char>(bits >> (8 * i)));
  }
  void text(std::string_view text) {
    if (text.empty()) return number(0);
    const auto [entry, fresh] = ids_.try_emplace(std::string(text), offsets_.size());
    if (fresh) {
      pool_ += text;
      offsets_.push_back(static_cast<uint32_t>(pool_.size()));
    }
    number(entry->second);
  }
  size_t size() const { return out_.size(); }

  /// magic | string count, pool size, body size, section offsets | body | string ends | pool
  std::string finish(std::span<const uint32_t> sections) const {
    std::string blob(kMagic);
    put32(blob, static_cast<uint32_t>(offsets_.size()));
    put32(blob, static_cast<uint32_t>(pool_.size()));
    put32(blob, static_cast<uint32_t>(out_.size()));
    put32(blob, static_cast<uint32_t>(sections.size()));
    for (const uint32_t section : sections) put32(blob, section);
    blob += out_;
    for (const uint32_t offset : offsets_) put32(blob, offset);
    blob += pool_;
    return blob;
  }

 private:
  static void put32(std::string& out, uint32_t value) {
    for (int i = 0; i < 4; ++i) out += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  }

  std::string out_;
  std::string pool_;
  std::vector<uint32_t> offsets_ = {0};  // end of string i in the pool; string 0 is ""
  std::unordered_map<std::string, size_t> ids_;
};

/// Reads what Encoder wrote. The bytes are ours, yet every step is checked: a wrong one sets `bad` and yields zeros.
class Decoder {
 public:
  explicit Decoder(std::string_view blob) {
    if (!blob.starts_with(kMagic) || blob.size() < kMagic.size() + 16) return;
    size_t at = kMagic.size();
    const auto next32 = [&] {
      const uint32_t value = get32(blob, at);
      at += 4;
      return value;
    };
    strings_ = next32();
    const size_t pool = next32();
    const size_t body = next32();
    const size_t sections = next32();
    if (blob.size() != at + 4 * sections + body + 4 * size_t{strings_} + pool) return;
    sections_ = blob.substr(at, 4 * sections);
    body_ = blob.substr(at + 4 * sections, body);
    offsets_ = blob.substr(at + 4 * sections + body, 4 * size_t{strings_});
    pool_ = blob.substr(blob.size() - pool);
    bad = false;
  }

  bool seek(size_t section) {
    if (bad || 4 * section + 4 > sections_.size()) return false;
    at_ = get32(sections_, 4 * section);
    return at_ <= body_.size();
  }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= body_.size()) return spoil();
      const auto byte = static_cast<unsigned char>(body_[at_++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return spoil();
  }
  /// A count of things of at least one byte each, so that a wrong one cannot ask for memory without bound.
  size_t count() {
    const uint64_t value = number();
    return value <= body_.size() - at_ ? static_cast<size_t>(value) : static_cast<size_t>(spoil());
  }
  double real() {
    if (body_.size() - at_ < 8) return static_cast<double>(spoil());
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits |= uint64_t{static_cast<unsigned char>(body_[at_++])} << (8 * i);
    return std::bit_cast<double>(bits);
  }
  std::string_view text() {
    const uint64_t id = number();
    if (id == 0) return {};
    if (id >= strings_) return spoil(), std::string_view();
    const size_t begin = get32(offsets_, 4 * static_cast<size_t>(id) - 4);
    const size_t end = get32(offsets_, 4 * static_cast<size_t>(id));
    if (begin > end || end > pool_.size()) return spoil(), std::string_view();
    return pool_.substr(begin, end - begin);
  }
  template <typename Enum>
  Enum choice(Enum last) {
    const uint64_t value = number();
    return value <= static_cast<uint64_t>(last) ? static_cast<Enum>(value) : static_cast<Enum>(spoil());
  }
  int small() {
    const uint64_t value = number();
    return value <= 100'000 ? static_cast<int>(value) : static_cast<int>(spoil());
  }

  bool bad = true;

 private:
  static uint32_t get32(std::string_view bytes, size_t at) {
    uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i) value |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    return value;
  }
  uint64_t spoil() {
    bad = true;
    at_ = body_.size();
    return 0;
  }

  std::string_view sections_, body_, offsets_, pool_;
  uint32_t strings_ = 0;
  size_t at_ = 0;
};

void put_cells(Encoder& out, const std::vector<Cell>& cells) {
  out.number(cells.size());
  for (const Cell& cell : cells) {
    out.number(static_cast<uint64_t>(cell.reduction));
    out.text(cell.formula);
  }
}

std::vector<Cell> get_cells(Decoder& in) {
  std::vector<Cell> cells(in.count());
  for (Cell& cell : cells) {
    cell.reduction = in.choice(Reduction::kSum);
    cell.formula = in.text();
  }
  return cells;
}

void put_expression(Encoder& out, const RuleExpression& expression) {
  out.text(expression.text);
  out.text(expression.name);
  out.text(expression.unit);
  out.number(expression.steps.size());
  for (const RuleStep& step : expression.steps) {
    out.number(static_cast<uint64_t>(step.kind));
    if (step.kind == RuleStep::Kind::kNumber) out.real(step.number);
    if (step.kind != RuleStep::Kind::kMetric && step.kind != RuleStep::Kind::kValue) continue;
    out.text(step.name);
    out.text(step.column);
  }
}

RuleExpression get_expression(Decoder& in) {
  RuleExpression expression;
  expression.text = in.text();
  expression.name = in.text();
  expression.unit = in.text();
  expression.steps.resize(in.count());
  for (RuleStep& step : expression.steps) {
    step.kind = in.choice(RuleStep::Kind::kOr);
    if (step.kind == RuleStep::Kind::kNumber) step.number = in.real();
    if (step.kind != RuleStep::Kind::kMetric && step.kind != RuleStep::Kind::kValue) continue;
    step.name = in.text();
    step.column = in.text();
  }
  return expression;
}

void put_condition(Encoder& out, const RuleCondition& condition) {
  put_expression(out, condition.quantity);
  out.number(static_cast<uint64_t>(condition.relation));
  out.real(condition.threshold);
}

RuleCondition get_condition(Decoder& in) {
  RuleCondition condition;
  condition.quantity = get_expression(in);
  condition.relation = in.choice(Relation::kAtMost);
  condition.threshold = in.real();
  return condition;
}

/// A list, its length before it.
template <typename List, typename Put>
void put_list(Encoder& out, const List& list, Put&& put) {
  out.number(list.size());
  for (const auto& each : list) put(each);
}
template <typename List, typename Get>
void get_list(Decoder& in, List& list, Get&& get) {
  list.resize(in.count());
  for (auto& each : list) get(each);
}

void put_architecture(Encoder& out, const Architecture& one) {
  const auto text = [&](std::string_view word) { out.text(word); };
  const auto pair = [&](const auto& words) {
    out.text(words.first);
    out.text(words.second);
  };
  const auto rename = [&](const Rename& names) {
    out.text(names.from);
    out.text(names.to);
  };
  for (const std::string_view word : {one.name, one.vendor, one.family}) out.text(word);
  put_list(out, one.names, text);
  put_list(out, one.like, text);
  out.number(one.metrics ? 1 : 0);
  put_list(out, one.renames, rename);
  put_list(out, one.recorded_as, rename);
  put_list(out, one.missing_sysinfo, pair);
  put_list(out, one.features, text);
  put_list(out, one.facts, [&](const Fact& fact) {
    out.text(fact.name);
    out.real(fact.number);
    out.text(fact.text);
  });
  put_list(out, one.counters, [&](const CounterBlock& block) {
    out.text(block.prefix);
    out.text(block.block);
    out.number(static_cast<uint64_t>(block.slots));
  });
  put_list(out, one.matrix, [&](const MatrixInstruction& matrix) {
    for (const std::string_view word : {matrix.element, matrix.instruction, matrix.builtin, matrix.operand})
      out.text(word);
    for (const uint32_t size : {matrix.m, matrix.n, matrix.k}) out.number(size);
    out.real(matrix.per_cycle);
  });
  const RooflineModel& model = one.roofline;
  for (const std::string_view word : {model.definition, model.l1, model.l2, model.hbm, model.lds, model.compat_flops})
    out.text(word);
  put_list(out, model.compat_hbm, pair);
  put_list(out, model.flops, [&](const FlopTerms& terms) {
    out.text(terms.type);
    out.number(terms.matrix ? 1 : 0);
    put_list(out, terms.terms, [&](const FlopTerm& term) {
      out.number(term.optional ? 1 : 0);
      put_list(out, term.formulas, text);
    });
  });
}

Architecture get_architecture(Decoder& in) {
  Architecture one;
  const auto text = [&](std::string_view& word) { word = in.text(); };
  const auto pair = [&](auto& words) {
    words.first = in.text();
    words.second = in.text();
  };
  const auto rename = [&](Rename& names) {
    names.from = in.text();
    names.to = in.text();
  };
  for (std::string_view* word : {&one.name, &one.vendor, &one.family}) *word = in.text();
  get_list(in, one.names, text);
  get_list(in, one.like, text);
  one.metrics = in.number() != 0;
  get_list(in, one.renames, rename);
  get_list(in, one.recorded_as, rename);
  get_list(in, one.missing_sysinfo, pair);
  get_list(in, one.features, text);
  get_list(in, one.facts, [&](Fact& fact) {
    fact.name = in.text();
    fact.number = in.real();
    fact.text = in.text();
  });
  get_list(in, one.counters, [&](CounterBlock& block) {
    block.prefix = in.text();
    block.block = in.text();
    block.slots = in.small();
  });
  get_list(in, one.matrix, [&](MatrixInstruction& matrix) {
    for (std::string_view* word : {&matrix.element, &matrix.instruction, &matrix.builtin, &matrix.operand})
      *word = in.text();
    for (uint32_t* size : {&matrix.m, &matrix.n, &matrix.k}) *size = static_cast<uint32_t>(in.small());
    matrix.per_cycle = in.real();
  });
  RooflineModel& model = one.roofline;
  for (std::string_view* word : {&model.definition, &model.l1, &model.l2, &model.hbm, &model.lds, &model.compat_flops})
    *word = in.text();
  get_list(in, model.compat_hbm, pair);
  get_list(in, model.flops, [&](FlopTerms& terms) {
    terms.type = in.text();
    terms.matrix = in.number() != 0;
    get_list(in, terms.terms, [&](FlopTerm& term) {
      term.optional = in.number() != 0;
      get_list(in, term.formulas, text);
    });
  });
  return one;
}

void put_catalog(Encoder& out, const Catalog& catalog) {
  out.number(catalog.blocks.size());
  for (const Block& block : catalog.blocks) {
    out.number(static_cast<uint64_t>(block.number));
    for (const std::string_view text : {block.slug, block.title, block.description}) out.text(text);
    out.number(block.aliases.size());
    for (const std::string_view alias : block.aliases) out.text(alias);
    out.number(block.tables.size());
    for (const Table& table : block.tables) {
      out.number(static_cast<uint64_t>(table.number));
      for (const std::string_view text : {table.slug, table.title, table.repeat}) out.text(text);
      out.number(static_cast<uint64_t>(table.type));
      out.number(static_cast<uint64_t>(table.style));
      out.number(table.comparable ? 1 : 0);
      out.number(table.columns.size());
      for (const Column& column : table.columns) {
        out.text(column.title);
        out.text(column.key);
        out.number(static_cast<uint64_t>(column.role));
        out.number(static_cast<uint64_t>(column.reduction));
      }
      out.number(table.metrics.size());
      for (const Metric& metric : table.metrics) {
        for (const std::string_view text :
             {metric.slug, metric.name, metric.unit, metric.coll_level, metric.description, metric.advice, metric.value,
              metric.compat_unit, metric.compat_name})
          out.text(text);
        out.number(static_cast<uint64_t>(metric.kind));
        put_cells(out, metric.cells);
        put_cells(out, metric.compat_cells);
      }
    }
  }
  out.number(catalog.definitions.size());
  for (const Definition& definition : catalog.definitions) {
    out.text(definition.name);
    out.text(definition.formula);
  }
  out.number(catalog.seed_ids.size());
  for (const SeedId& seed : catalog.seed_ids) {
    for (const int part : {seed.id.block, seed.id.table, seed.id.row}) out.number(static_cast<uint64_t>(part));
    out.text(seed.slug);
    out.number((seed.analyze ? 1u : 0u) | (seed.profile ? 2u : 0u));
  }
  out.number(catalog.sets.size());
  for (const MetricSet& set : catalog.sets) {
    for (const std::string_view text : {set.name, set.title, set.description}) out.text(text);
    out.number(set.metrics.size());
    for (const std::string_view slug : set.metrics) out.text(slug);
  }
  out.number(catalog.groups.size());
  for (const ArchitectureGroup& group : catalog.groups) {
    out.text(group.name);
    out.number(static_cast<uint64_t>(group.rank));
  }
  out.number(catalog.run_values.size());
  for (const RunValue& value : catalog.run_values) {
    out.text(value.name);
    out.text(value.meaning);
  }
}

Catalog get_catalog(Decoder& in) {
  Catalog catalog;
  catalog.blocks.resize(in.count());
  for (Block& block : catalog.blocks) {
    block.number = in.small();
    for (std::string_view* text : {&block.slug, &block.title, &block.description}) *text = in.text();
    block.aliases.resize(in.count());
    for (std::string_view& alias : block.aliases) alias = in.text();
    block.tables.resize(in.count());
    for (Table& table : block.tables) {
      table.block = block.number;
      table.number = in.small();
      for (std::string_view* text : {&table.slug, &table.title, &table.repeat}) *text = in.text();
      table.type = in.choice(TableType::kPcSampling);
      table.style = in.choice(TableStyle::kMemoryChart);
      table.comparable = in.number() != 0;
      table.columns.resize(in.count());
      for (Column& column : table.columns) {
        column.title = in.text();
        column.key = in.text();
        column.role = in.choice(ColumnRole::kValue);
        column.reduction = in.choice(Reduction::kSum);
      }
      table.metrics.resize(in.count());
      int row = 0;
      for (Metric& metric : table.metrics) {
        metric.id = {block.number, table.number, row++};
        for (std::string_view* text :
             {&metric.slug, &metric.name, &metric.unit, &metric.coll_level, &metric.description, &metric.advice,
              &metric.value, &metric.compat_unit, &metric.compat_name})
          *text = in.text();
        metric.kind = in.choice(Kind::kRatio);
        metric.cells = get_cells(in);
        metric.compat_cells = get_cells(in);
      }
    }
  }
  catalog.definitions.resize(in.count());
  for (Definition& definition : catalog.definitions) {
    definition.name = in.text();
    definition.formula = in.text();
  }
  catalog.seed_ids.resize(in.count());
  for (SeedId& seed : catalog.seed_ids) {
    for (int* part : {&seed.id.block, &seed.id.table, &seed.id.row}) *part = in.small();
    seed.slug = in.text();
    const uint64_t where = in.number();
    seed.analyze = (where & 1) != 0;
    seed.profile = (where & 2) != 0;
  }
  catalog.sets.resize(in.count());
  for (MetricSet& set : catalog.sets) {
    for (std::string_view* text : {&set.name, &set.title, &set.description}) *text = in.text();
    set.metrics.resize(in.count());
    for (std::string_view& slug : set.metrics) slug = in.text();
  }
  catalog.groups.resize(in.count());
  for (ArchitectureGroup& group : catalog.groups) {
    group.name = in.text();
    group.rank = in.small();
  }
  catalog.run_values.resize(in.count());
  for (RunValue& value : catalog.run_values) {
    value.name = in.text();
    value.meaning = in.text();
  }
  catalog.strings = std::make_shared<StringStore>();
  return catalog;
}

/// Sections of the blob: 0 the architectures, 1 the rules, 2... one catalog an architecture with metrics.
constexpr size_t kArchitectures = 0;
constexpr size_t kRules = 1;
constexpr size_t kFirstCatalog = 2;

tl::unexpected<Error> damaged() {
  return fail("the built-in metric catalog is damaged; reinstall tacho");
}

}  // namespace

std::string encode_blob(std::span<const Architecture> architectures, std::span<const Catalog> catalogs,
                        const RuleBook& rules) {
  Encoder out;
  std::vector<uint32_t> sections;
  const auto begin_section = [&] { sections.push_back(static_cast<uint32_t>(out.size())); };

  begin_section();
  put_list(out, architectures, [&](const Architecture& one) { put_architecture(out, one); });

  begin_section();
  put_list(out, rules.rules, [&](const Rule& rule) {
    for (const std::string_view text : {rule.slug, rule.vendor, rule.title, rule.meaning, rule.model,
                                        rule.only_possible, rule.sentence, rule.refuted_by, rule.spans})
      out.text(text);
    out.real(rule.error);
    for (const std::vector<RuleCondition>* list : {&rule.when, &rule.any, &rule.unless})
      put_list(out, *list, [&](const RuleCondition& condition) { put_condition(out, condition); });
    for (const RuleExpression* each : {&rule.saves_low, &rule.saves_high, &rule.of}) put_expression(out, *each);
    put_list(out, rule.evidence, [&](const RuleExpression& each) { put_expression(out, each); });
    put_list(out, rule.advice, [&](std::string_view advice) { out.text(advice); });
    put_list(out, rule.in_sentence, [&](const RuleExpression& each) { put_expression(out, each); });
  });
  put_list(out, rules.checks, [&](const RuleCheck& check) {
    for (const std::string_view text : {check.slug, check.vendor, check.says}) out.text(text);
    put_condition(out, check.when);
    put_list(out, check.suspects, [&](std::string_view suspect) { out.text(suspect); });
  });
  put_list(out, rules.screens, [&](const RuleScreen& screen) {
    out.text(screen.vendor);
    out.text(screen.weight_words);
    put_expression(out, screen.weight);
    put_list(out, screen.bars, [&](const RuleExpression& each) { put_expression(out, each); });
  });

  for (const Catalog& catalog : catalogs) {
    begin_section();
    put_catalog(out, catalog);
  }
  return out.finish(sections);
}

Result<std::vector<Architecture>> decode_architectures(std::string_view blob) {
  Decoder in(blob);
  if (!in.seek(kArchitectures)) return damaged();
  std::vector<Architecture> out;
  const size_t count = in.count();
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) out.push_back(get_architecture(in));
  if (in.bad) return damaged();
  return out;
}

Result<Catalog> decode_catalog(std::string_view blob, std::span<const Architecture> architectures,
                               std::string_view architecture) {
  size_t section = kFirstCatalog;
  std::string names;
  for (const Architecture& one : architectures) {
    if (!one.metrics) continue;
    if (one.name == architecture) {
      Decoder in(blob);
      if (!in.seek(section)) return damaged();
      Catalog catalog = get_catalog(in);
      if (in.bad) return damaged();
      catalog.vendor = one.vendor;
      catalog.architecture = one.name;
      catalog.facts = one;
      return catalog;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
    ++section;
  }
  return fail("there is no metric catalog for the architecture \"{}\"; known are {}", architecture, names);
}

Result<RuleBook> decode_rules(std::string_view blob) {
  Decoder in(blob);
  if (!in.seek(kRules)) return damaged();
  RuleBook book;
  const auto fill = [&](auto& list, auto get) {
    list.resize(in.count());
    for (auto& each : list) each = get();
  };
  const auto expression = [&] { return get_expression(in); };
  const auto condition = [&] { return get_condition(in); };
  const auto text = [&] { return in.text(); };
  fill(book.rules, [&] {
    Rule rule;
    for (std::string_view* each : {&rule.slug, &rule.vendor, &rule.title, &rule.meaning, &rule.model,
                                   &rule.only_possible, &rule.sentence, &rule.refuted_by, &rule.spans})
      *each = in.text();
    rule.error = in.real();
    for (std::vector<RuleCondition>* list : {&rule.when, &rule.any, &rule.unless}) fill(*list, condition);
    for (RuleExpression* each : {&rule.saves_low, &rule.saves_high, &rule.of}) *each = get_expression(in);
    fill(rule.evidence, expression);
    fill(rule.advice, text);
    fill(rule.in_sentence, expression);
    return rule;
  });
  fill(book.checks, [&] {
    RuleCheck check;
    for (std::string_view* each : {&check.slug, &check.vendor, &check.says}) *each = in.text();
    check.when = get_condition(in);
    fill(check.suspects, text);
    return check;
  });
  fill(book.screens, [&] {
    RuleScreen screen;
    screen.vendor = in.text();
    screen.weight_words = in.text();
    screen.weight = get_expression(in);
    fill(screen.bars, expression);
    return screen;
  });
  if (in.bad) return damaged();
  book.strings = std::make_shared<StringStore>();
  return book;
}

}  // namespace tacho::metric
