// An independent decoder of Perfetto traces for tests. It knows only the messages and fields that Perfetto v46 and
// today's version both have (numbers and wire types from their protos) and takes anything else for an error.
#pragma once

#include <cstdint>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <string>
#include <vector>

namespace tacho::test {

struct PerfettoEvent {
  int64_t time = 0;  // BOOTTIME ns
  int type = 0;      // 1 begin, 2 end, 3 instant, 4 counter
  uint64_t track = 0;
  std::string category, name;
  std::map<std::string, std::string> args;  // numbers as text
  std::vector<uint64_t> flows;
  double value = 0;
};
struct PerfettoTrack {
  uint64_t parent = 0;
  std::string name;
  bool is_process = false, is_thread = false, is_counter = false;
  int64_t pid = 0, tid = 0;
  int unit = 0;
  std::string unit_name, command;
};
struct PerfettoSample {
  int64_t time = 0;
  int64_t pid = 0, tid = 0;
  std::vector<std::string> frames;  // outermost first
};

struct PerfettoTrace {
  std::map<uint64_t, PerfettoTrack> tracks;
  std::vector<PerfettoEvent> events;  // in file order
  std::vector<PerfettoSample> samples;
  std::vector<std::map<uint32_t, int64_t>> snapshots;  // clock id -> value
  std::vector<std::string> errors;

  std::vector<const PerfettoEvent*> of_category(const std::string& category) const {
    std::vector<const PerfettoEvent*> found;
    for (const PerfettoEvent& event : events)
      if (event.category == category && event.type != 2) found.push_back(&event);
    return found;
  }
};

/// Decodes and checks: known fields only, flags and sequence, clocks, interned names before their use, tracks
/// described, counters described before their values, time not going backwards, begins and ends balanced and nested per
/// track.
PerfettoTrace read_perfetto(const std::string& bytes);

}  // namespace tacho::test
