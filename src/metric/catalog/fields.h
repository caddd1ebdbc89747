// The fields of everything in a catalog and its rules, each named once, in the order of the compact form. An archive is
// called with them: the encoder and the decoder of blob.cpp, and the rules' copying of text into another store.
#pragma once

#include <concepts>
#include <type_traits>

#include "metric/catalog/catalog.h"
#include "metric/catalog/rules.h"

namespace tacho::metric {

template <typename T, typename Of>
concept Like = std::same_as<std::remove_const_t<T>, Of>;

struct Fields {
  // Enumerations: the last enumerator, beyond which a number is damage.

  static constexpr Reduction last_of(Reduction) { return Reduction::kSum; }
  static constexpr Kind last_of(Kind) { return Kind::kRatio; }
  static constexpr TableType last_of(TableType) { return TableType::kPcSampling; }
  static constexpr TableStyle last_of(TableStyle) { return TableStyle::kMemoryChart; }
  static constexpr ColumnRole last_of(ColumnRole) { return ColumnRole::kValue; }
  static constexpr RuleRelation last_of(RuleRelation) { return RuleRelation::kAtMost; }
  static constexpr FormulaOp last_of(FormulaOp) { return FormulaOp::kCoalesce; }

  // Architectures

  static void of(auto& archive, Like<Rename> auto& x) { archive(x.from, x.to); }
  static void of(auto& archive, Like<ArchitectureFact> auto& x) { archive(x.name, x.number, x.text); }
  static void of(auto& archive, Like<CounterBlock> auto& x) { archive(x.prefix, x.block, x.slots); }
  static void of(auto& archive, Like<MatrixInstruction> auto& x) {
    archive(x.element, x.instruction, x.builtin, x.operand, x.m, x.n, x.k, x.per_cycle);
  }
  static void of(auto& archive, Like<FlopTerm> auto& x) { archive(x.optional, x.formulas); }
  static void of(auto& archive, Like<FlopTerms> auto& x) { archive(x.type, x.matrix, x.terms); }
  static void of(auto& archive, Like<RooflineModel> auto& x) {
    archive(x.definition, x.l1, x.l2, x.hbm, x.lds, x.compat_flops, x.compat_definition, x.compat_l1, x.compat_l2,
            x.compat_hbm, x.flops, x.names);
  }
  static void of(auto& archive, Like<Architecture> auto& x) {
    archive(x.name, x.vendor, x.family, x.names, x.like, x.metrics, x.renames, x.recorded_as, x.missing_sysinfo,
            x.features, x.facts, x.counters, x.matrix, x.roofline);
  }

  // Catalogs

  static void of(auto& archive, Like<Cell> auto& x) { archive(x.reduction, x.formula); }
  static void of(auto& archive, Like<MetricColumn> auto& x) { archive(x.title, x.key, x.role, x.reduction); }
  static void of(auto& archive, Like<Metric> auto& x) {
    archive(x.slug, x.name, x.unit, x.coll_level, x.description, x.advice, x.value, x.compat_unit, x.compat_name,
            x.kind, x.cells, x.compat_cells);
  }
  static void of(auto& archive, Like<MetricTable> auto& x) {
    archive(x.number, x.slug, x.title, x.repeat, x.type, x.style, x.comparable, x.columns, x.metrics);
  }
  static void of(auto& archive, Like<Block> auto& x) {
    archive(x.number, x.slug, x.title, x.description, x.aliases, x.tables);
  }
  static void of(auto& archive, Like<Definition> auto& x) { archive(x.name, x.formula); }
  static void of(auto& archive, Like<MetricId> auto& x) { archive(x.block, x.table, x.row); }
  static void of(auto& archive, Like<SeedId> auto& x) {
    archive(x.id, x.slug);
    archive.bits(x.analyze, x.profile);
  }
  static void of(auto& archive, Like<MetricSet> auto& x) { archive(x.name, x.title, x.description, x.metrics); }
  static void of(auto& archive, Like<ArchitectureGroup> auto& x) { archive(x.name, x.rank); }
  static void of(auto& archive, Like<RunValue> auto& x) { archive(x.name, x.meaning); }
  static void of(auto& archive, Like<Catalog> auto& x) {
    archive(x.blocks, x.definitions, x.seed_ids, x.sets, x.groups, x.run_values);
  }

  // Rules

  static void of(auto& archive, Like<FormulaStep> auto& x) {
    archive(x.op);
    if (x.op == FormulaOp::kNumber) archive(x.number);
    if (x.op == FormulaOp::kMetric || x.op == FormulaOp::kValue) archive(x.text, x.column);
    if (x.op > FormulaOp::kValue) archive(x.argument_count, x.arguments[0], x.arguments[1], x.arguments[2]);
  }
  static void of(auto& archive, Like<RuleExpression> auto& x) { archive(x.text, x.name, x.unit, x.steps); }
  static void of(auto& archive, Like<RuleCondition> auto& x) { archive(x.quantity, x.relation, x.threshold); }
  static void of(auto& archive, Like<Rule> auto& x) {
    archive(x.slug, x.vendor, x.title, x.meaning, x.model, x.only_possible, x.sentence, x.refuted_by, x.spans, x.error,
            x.when, x.any, x.unless, x.saves_low, x.saves_high, x.frees_low, x.frees_high, x.of, x.evidence, x.advice,
            x.in_sentence);
  }
  static void of(auto& archive, Like<RuleCheck> auto& x) { archive(x.slug, x.vendor, x.says, x.when, x.suspects); }
  static void of(auto& archive, Like<RuleScreen> auto& x) { archive(x.vendor, x.weight_words, x.weight, x.bars); }
  static void of(auto& archive, Like<RuleBook> auto& x) { archive(x.rules, x.checks, x.screens); }
};

/// Calls the archive's value() for a leaf, its list() for the length of a list, and Fields::of() for everything else.
template <typename Archive, typename T>
void visit_fields(Archive& archive, T& x) {
  if constexpr (requires { archive.value(x); }) {
    archive.value(x);
  } else if constexpr (requires { x.first, x.second; }) {
    visit_fields(archive, x.first);
    visit_fields(archive, x.second);
  } else if constexpr (requires { x.begin(); }) {
    archive.list(x);
    for (auto& each : x) visit_fields(archive, each);
  } else {
    Fields::of(archive, x);
  }
}

}  // namespace tacho::metric
