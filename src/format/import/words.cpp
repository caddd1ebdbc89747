// The tables of words (words.h).
#include "format/import/words.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "vendor/definitions.h"

namespace tacho::format::imported {

using event::CopyDirection;
using event::Domain;
using event::kUnknown;
using event::MemoryKind;
using event::SyncKind;

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool same_letters(std::string_view text, std::string_view lowercase) {
  return text.size() == lowercase.size() &&
         std::equal(text.begin(), text.end(), lowercase.begin(), [](char a, char b) { return lower(a) == b; });
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool contains_letters(std::string_view text, std::string_view lowercase) {
  for (size_t at = 0; at + lowercase.size() <= text.size(); ++at)
    if (same_letters(text.substr(at, lowercase.size()), lowercase)) return true;
  return false;
}

bool is_capital(std::string_view text, size_t at) {
  return at < text.size() && text[at] >= 'A' && text[at] <= 'Z';
}

bool is_letter(char c) {
  return lower(c) >= 'a' && lower(c) <= 'z';
}

// The direction of two letters such as H and D. Level Zero calls host memory M; shared memory, S, may lie on either
// side.
CopyDirection direction_of(char from, char to) {
  const auto host = [](char c) { return c == 'H' || c == 'M'; };
  if (from == 'A') from = 'D';  // an array of the device
  if (to == 'A') to = 'D';
  if (from == 'P' || to == 'P') return CopyDirection::kPeerToPeer;
  if (host(from) && host(to)) return CopyDirection::kHostToHost;
  if (host(from) && to == 'D') return CopyDirection::kHostToDevice;
  if (from == 'D' && host(to)) return CopyDirection::kDeviceToHost;
  if (from == 'D' && to == 'D') return CopyDirection::kDeviceToDevice;
  return CopyDirection::kUnknown;
}

// "HtoD" or "H2D" at `at`, its first letter.
CopyDirection short_direction(std::string_view text, size_t at) {
  constexpr std::string_view kSides = "HDPMSA";
  if (kSides.find(text[at]) == std::string_view::npos || is_capital(text, at - 1)) return CopyDirection::kUnknown;
  const std::string_view rest = text.substr(at + 1);
  const size_t between = rest.starts_with("to") ? 2 : rest.starts_with('2') ? 1 : 0;
  if (between == 0 || rest.size() <= between || kSides.find(rest[between]) == std::string_view::npos)
    return CopyDirection::kUnknown;
  if (rest.size() > between + 1 && is_letter(rest[between + 1])) return CopyDirection::kUnknown;  // "HtoDevice"
  return direction_of(text[at], rest[between]);
}

}  // namespace

Domain domain_of_function(std::string_view function) {
  if (function.starts_with("MPI_")) return Domain::kMpi;
  if (function.starts_with("aten::")) return Domain::kOperator;
  return vendor::domain_by_prefix(function);
}

Domain domain_of_word(std::string_view word) {
  struct Known {
    std::string_view part;
    Domain domain;
  };
  if (const Domain named = vendor::domain_by_word(word); named != Domain::kUnknown) return named;
  static constexpr Known kKnown[] = {
      {"marker", Domain::kMarker}, {"operator", Domain::kOperator}, {"python", Domain::kPython},
      {"mpi", Domain::kMpi},       {"host", Domain::kHost},
  };
  for (const Known& known : kKnown)
    if (contains_letters(word, known.part)) return known.domain;
  return Domain::kUnknown;
}

CopyDirection copy_direction(std::string_view text) {
  for (size_t at = 0; at + 2 < text.size(); ++at)
    if (const CopyDirection way = short_direction(text, at); way != CopyDirection::kUnknown) return way;
  struct Known {
    std::string_view capitals, letters;
    CopyDirection direction;
  };
  static constexpr Known kKnown[] = {
      {"HOST_TO_DEVICE", "hosttodevice", CopyDirection::kHostToDevice},
      {"DEVICE_TO_HOST", "devicetohost", CopyDirection::kDeviceToHost},
      {"DEVICE_TO_DEVICE", "devicetodevice", CopyDirection::kDeviceToDevice},
      {"HOST_TO_HOST", "hosttohost", CopyDirection::kHostToHost},
      {"PEER", "peer", CopyDirection::kPeerToPeer},
  };
  for (const Known& known : kKnown)
    if (contains(text, known.capitals) || contains_letters(text, known.letters)) return known.direction;
  return CopyDirection::kUnknown;
}

MemoryKind memory_kind(std::string_view word) {
  struct Known {
    std::string_view word;
    MemoryKind kind;
  };
  static constexpr Known kKnown[] = {
      {"pageable", MemoryKind::kPageable}, {"pinned", MemoryKind::kPinned},   {"device", MemoryKind::kDevice},
      {"array", MemoryKind::kArray},       {"managed", MemoryKind::kManaged}, {"unified", MemoryKind::kManaged},
      {"shared", MemoryKind::kManaged},    {"host", MemoryKind::kHost},       {"svm", MemoryKind::kSvm},
  };
  for (const Known& known : kKnown)
    if (same_letters(word, known.word)) return known.kind;
  return MemoryKind::kUnknown;
}

MemoryEnds memory_ends(std::string_view text) {
  const size_t open = text.find('('), close = text.find(')', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return {};
  const std::string_view inside = text.substr(open + 1, close - open - 1);
  const size_t arrow = inside.find(" -> ");
  if (arrow == std::string_view::npos) return {MemoryKind::kUnknown, memory_kind(inside)};
  return {memory_kind(inside.substr(0, arrow)), memory_kind(inside.substr(arrow + 4))};
}

SyncKind sync_kind(std::string_view text) {
  if (contains(text, "Stream Wait")) return SyncKind::kQueueWaitEvent;
  if (contains(text, "Stream") || contains(text, "Queue")) return SyncKind::kQueue;
  if (contains(text, "Event")) return SyncKind::kEvent;
  if (contains(text, "Context")) return SyncKind::kContext;
  if (contains(text, "Device")) return SyncKind::kDevice;
  return SyncKind::kUnknown;
}

int64_t gpu_of_name(std::string_view name) {
  if (name == "CUDA functions") return 0;
  constexpr std::string_view kDevice = "/device:GPU:", kPlain = "GPU";
  const size_t device = name.find(kDevice);
  std::string_view digits;
  if (device != std::string_view::npos)
    digits = name.substr(device + kDevice.size());
  else if (name.starts_with(kPlain))
    digits = name.substr(kPlain.size());
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || number < 0) return kUnknown;
  const bool whole = stop == digits.data() + digits.size() || *stop == ' ' || *stop == ':' || *stop == '/';
  return whole ? number : kUnknown;
}

bool thread_of_name(std::string_view& text, int64_t& tid) {
  constexpr std::string_view kWord = "THREAD ";
  if (!text.starts_with(kWord)) return false;
  const char* const end = text.data() + text.size();
  int64_t index = 0, number = 0;
  const auto place = std::from_chars(text.data() + kWord.size(), end, index);
  if (place.ec != std::errc() || index < 0 || end - place.ptr < 2 || place.ptr[0] != ' ' || place.ptr[1] != '(')
    return false;
  const auto given = std::from_chars(place.ptr + 2, end, number);
  if (given.ec != std::errc() || number < 0 || given.ptr == end || *given.ptr != ')') return false;
  text.remove_prefix(static_cast<size_t>(given.ptr + 1 - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  tid = number;
  return true;
}

std::string_view kernel_of_symbol(std::string_view name) {
  for (const std::string_view suffix : {" [clone .kd]", " (.kd)", ".kd"})
    if (name.size() > suffix.size() && name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

}  // namespace tacho::format::imported
