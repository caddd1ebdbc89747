// Joins the rules of several catalog files: those of tacho's vendors, and a user's over them.
#pragma once

#include "metric/catalog/rules.h"

namespace tacho::metric {

/// Adds rules, checks and screens to a book; one with a known slug of the same vendor (of any, if it names none)
/// replaces that. The book gets copies of the text.
void add_rules(RuleBook& book, const RuleBook& more);

}  // namespace tacho::metric
