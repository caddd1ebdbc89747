// Tables of names (names.h).
#include "format/otlp/names.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace tacho::format::otlp {
namespace {

constexpr ConventionalMetric kConventional[] = {
    {"Temperature", true, "hw.temperature", "Cel", 1, Instrument::kGauge},
    {"Current Power", true, "hw.power", "W", 1, Instrument::kGauge, "hw.type", "gpu"},
    {"Energy", true, "hw.energy", "J", 1, Instrument::kCounter, "hw.type", "gpu"},
    {"Memory Usage", true, "hw.gpu.memory.usage", "By", 1, Instrument::kUpDown},
    {"GFX Busy", true, "hw.gpu.utilization", "1", 0.01, Instrument::kGauge, "hw.gpu.task", "general"},
    {"CPU User Time", false, "process.cpu.time", "s", 1, Instrument::kCounter, "cpu.mode", "user"},
    {"CPU Kernel Time", false, "process.cpu.time", "s", 1, Instrument::kCounter, "cpu.mode", "system"},
    {"CPU Memory Usage", false, "process.memory.usage", "By", 1, Instrument::kUpDown},
    {"CPU Virtual Memory Usage", false, "process.memory.virtual", "By", 1, Instrument::kUpDown},
    {"Threads", false, "process.thread.count", "{thread}", 1, Instrument::kUpDown},
    {"Disk Read", false, "process.disk.io", "By", 1, Instrument::kCounter, "disk.io.direction", "read"},
    {"Disk Written", false, "process.disk.io", "By", 1, Instrument::kCounter, "disk.io.direction", "write"},
};

}  // namespace

const ConventionalMetric* conventional_metric(bool gpu, std::string_view counter) {
  const auto* const found =
      std::find_if(std::begin(kConventional), std::end(kConventional),
                   [&](const ConventionalMetric& one) { return one.gpu == gpu && one.counter == counter; });
  return found == std::end(kConventional) ? nullptr : found;
}

std::string ucum(std::string_view unit) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"", "1"},     {"B", "By"}, {"B/s", "By/s"}, {"%", "%"}, {"MHz", "MHz"}, {"Hz", "Hz"}, {"deg C", "Cel"},
      {"°C", "Cel"}, {"s", "s"},  {"ns", "ns"},    {"W", "W"}, {"J", "J"},     {"V", "V"},   {"A", "A"}};
  for (const auto& [word, ours] : kWords)
    if (word == unit) return std::string(ours);
  std::string text = "{";
  for (const char c : unit) text += c > ' ' && c < 0x7f && c != '{' && c != '}' ? c : '_';
  return text + "}";
}

std::string counter_metric(std::string_view counter) {
  constexpr size_t kMost = 200;
  std::string name = "tacho.counter.";
  for (const char c : counter.substr(0, kMost)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 0x80;
    if (plain)
      name += static_cast<char>(std::tolower(c));
    else if (!name.ends_with('_') && !name.ends_with('.'))
      name += '_';
  }
  while (name.ends_with('_')) name.pop_back();
  if (name.ends_with('.')) name += "unnamed";
  return name;
}

}  // namespace tacho::format::otlp
