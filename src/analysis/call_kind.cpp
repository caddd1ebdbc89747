// Kinds of calls by name (call_kind.h).
#include "analysis/call_kind.h"

#include <algorithm>
#include <string>

#include "vendor/definitions.h"

namespace tacho::analysis {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool has_one(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return has(text, part); });
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

struct ListedCalls {
  std::string_view family;
  CallKind kind;
  std::string_view name;
  bool whole;  // otherwise a part of names
};
constexpr ListedCalls kListedCalls[] = {
#define TACHO_CALL(family, kind, part) {family, CallKind::kind, part, false},
#define TACHO_CALL_NAMED(family, kind, name) {family, CallKind::kind, name, true},
#include "vendor/vendors.def"
};

}  // namespace

CallKind call_kind(event::Domain domain, std::string_view function) {
  switch (domain) {
    case event::Domain::kMarker:
    case event::Domain::kPython:
    case event::Domain::kMpi:
    case event::Domain::kHost:
    case event::Domain::kOperator:
      return CallKind::kNone;
    default:
      break;
  }
  const std::string_view family = vendor::api_family(domain);
  for (const auto& known : kListedCalls) {
    // The lists of all APIs count for a function of an unknown one; that all functions of an API are alike does not.
    const bool counts = family.empty() ? !known.name.empty() : known.family == family;
    if (counts && (known.whole ? function == known.name : has(function, known.name))) return known.kind;
  }
  return CallKind::kOther;
}

HostWork host_work(std::string_view name) {
  const std::string text = lower_case(name);
  if (has_one(text, {"dataloader", "data_loader", "data loading", "load_batch", "next_batch", "data_load"}))
    return HostWork::kLoading;
  if (has_one(text, {"(dynamo_timed)", "convert_frame.py(", "compile_inner", "triton/compiler/compiler.py(",
                     "_do_compile", "backend_compile", "xlacompile", "xla_compile", "pjit_compile"}))
    return HostWork::kCompiling;
  if (text == "python gc" ||
      has_one(text, {"<built-in function collect>", "<built-in method collect", "gc.collect", "garbage collect"}))
    return HostWork::kCollecting;
  if (text.starts_with("host function of stream ")) return HostWork::kInQueue;
  return HostWork::kNone;
}

}  // namespace tacho::analysis
