// Kinds of host work by domain and name (host_kind.h).
#include "analysis/host/host_kind.h"

#include <algorithm>
#include <initializer_list>

namespace tacho::analysis {
namespace {

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "acquire" of "<built-in method acquire of _thread.lock object at 0x7f>" and "<method 'acquire' of ...>".
std::string_view built_in_name(std::string_view text) {
  for (const std::string_view before : {"<built-in method ", "<built-in function ", "<method '"})
    if (text.starts_with(before)) {
      text.remove_prefix(before.size());
      return text.substr(0, text.find_first_of(" '>"));
    }
  return {};
}

}  // namespace

std::string_view to_string(HostKind kind) {
  static constexpr std::string_view kNames[] = {"API", "operator", "Python", "function", "marker", "wait"};
  return kNames[static_cast<size_t>(kind)];
}

bool functions_nest(event::Domain domain) {
  return domain == event::Domain::kPython || domain == event::Domain::kOperator || domain == event::Domain::kHost;
}

bool python_waits(std::string_view function) {
  if (const std::string_view name = built_in_name(function); !name.empty()) {
    const size_t dot = name.rfind('.');
    return one_of(dot == std::string_view::npos ? name : name.substr(dot + 1),
                  {"acquire", "sleep", "select", "poll", "wait", "accept", "recv", "recv_into"});
  }
  // "/usr/lib/python3.11/threading.py(359): wait"
  const size_t line = function.rfind(".py(");
  const size_t colon = line == std::string_view::npos ? line : function.find("): ", line);
  if (colon == std::string_view::npos) return false;
  const std::string_view file = function.substr(0, line);
  const std::string_view name = function.substr(colon + 3);
  const std::string_view base = file.substr(file.rfind('/') + 1);  // npos + 1 = 0
  const bool waits_there = one_of(base, {"threading", "queue", "selectors", "synchronize", "subprocess", "popen_fork",
                                         "socket", "process"}) ||
                           file.ends_with("multiprocessing/connection") || file.ends_with("multiprocessing/queues") ||
                           file.ends_with("concurrent/futures/_base");
  return waits_there &&
         one_of(name, {"wait", "wait_for", "_wait_for_tstate_lock", "join", "acquire", "get", "select", "poll", "_poll",
                       "recv", "recv_bytes", "_recv", "_recv_bytes", "accept", "_wait", "_try_wait", "result"});
}

HostKind host_kind(event::Domain domain, std::string_view function) {
  switch (domain) {
    case event::Domain::kOperator:
      return HostKind::kOperator;
    case event::Domain::kPython:
      return python_waits(function) ? HostKind::kWait : HostKind::kPython;
    case event::Domain::kHost:
      return HostKind::kFunction;
    default:
      return HostKind::kApi;
  }
}

}  // namespace tacho::analysis
