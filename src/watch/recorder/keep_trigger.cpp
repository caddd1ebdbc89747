// The words of --trigger (keep_trigger.h).
#include "watch/recorder/keep_trigger.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "event/watch_ring.h"

namespace tacho::watch {
namespace {

struct CauseWord {
  std::string_view word;
  KeepCause cause;
};
constexpr CauseWord kWords[] = {{"signal", KeepCause::kSignal},
                                {"crash", KeepCause::kCrash},
                                {"program", KeepCause::kProgram},
                                {"marker", KeepCause::kMarker},
                                {"slow-step", KeepCause::kSlowStep},
                                {"idle", KeepCause::kIdle},
                                {"new-kernel", KeepCause::kNewKernel},
                                {"memory", KeepCause::kMemory},
                                {"out-of-memory", KeepCause::kOutOfMemory},
                                {"collective", KeepCause::kCollective},
                                {"key", KeepCause::kKey}};
constexpr const char* kAll =
    "signal:USR1, signal:USR2, crash, out-of-memory, program, marker:TEXT, slow-step:20%, slow-step:20%:RANGE, idle:50%, "
    "new-kernel, memory:90% or collective:100ms";

// "20%" -> 0.2.
std::optional<double> parse_share(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value <= 0)
    return std::nullopt;
  return value / 100;
}

// "500ms", "2s", "1min" -> seconds.
std::optional<double> parse_seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value <= 0) return std::nullopt;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const auto& [word, seconds] :
       {std::pair<std::string_view, double>{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}})
    if (unit == word) return value * seconds;
  return std::nullopt;
}

Status parse_signal(std::string_view name, KeepTrigger& trigger) {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  if (name == "USR1") trigger.signal = SIGUSR1;
  if (name == "USR2") trigger.signal = SIGUSR2;
  if (trigger.signal == 0) return fail("--trigger {}: give signal:USR1 or signal:USR2", trigger.words);
  return {};
}

// A marker's text is compared as far as it is kept.
Status check_text(const KeepTrigger& trigger) {
  constexpr size_t kMost = event::kWatchMarkTextBytes + event::kWatchTextRecords * event::kWatchTextBytes;
  if (trigger.text.size() <= kMost) return {};
  return fail("--trigger {}: the text has {} bytes; tacho keeps {} of a marker's", trigger.words, trigger.text.size(),
              kMost);
}

// What stands behind the first colon.
Status parse_rest(std::string_view rest, bool given, KeepTrigger& trigger) {
  const size_t colon = rest.find(':');
  const std::string_view first = rest.substr(0, colon);
  const std::string_view second = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  const auto share = [&](double most, std::string_view example) -> Status {
    const auto value = parse_share(first);
    if (!value || *value > most) return fail("--trigger {}: give a share, as in {}", trigger.words, example);
    trigger.share = *value;
    return {};
  };
  const auto seconds = [&](std::string_view text, std::string_view example) -> Status {
    const auto value = parse_seconds(text);
    if (!value)
      return fail("--trigger {}: give a time with its unit (us, ms, s, min), as in {}", trigger.words, example);
    trigger.seconds = *value;
    return {};
  };
  switch (trigger.cause) {
    case KeepCause::kSignal:
      return parse_signal(rest, trigger);
    case KeepCause::kMarker:
      if (rest.empty())
        return fail("--trigger {}: give the text of the mark or range, as in marker:step", trigger.words);
      trigger.text = rest;
      return check_text(trigger);
    case KeepCause::kSlowStep:
      TACHO_TRY(share(1e6, "slow-step:20%"));
      if (colon == std::string_view::npos) return {};
      if (second.empty())
        return fail("--trigger {}: give the name of the ranges that are steps, as in slow-step:20%:step",
                    trigger.words);
      trigger.text = second;
      return check_text(trigger);
    case KeepCause::kIdle:
      TACHO_TRY(share(0.999, "idle:50%"));
      trigger.seconds = 1;
      return colon == std::string_view::npos ? Status() : seconds(second, "idle:50%:2s");
    case KeepCause::kMemory:
      return share(1, "memory:90%");
    case KeepCause::kNewKernel:
      trigger.seconds = 10;
      return given ? seconds(rest, "new-kernel:30s") : Status();
    case KeepCause::kCollective:
      return seconds(rest, "collective:100ms");
    case KeepCause::kCrash:
    case KeepCause::kProgram:
    case KeepCause::kOutOfMemory:
    case KeepCause::kKey:
      if (given) return fail("--trigger {}: '{}' takes nothing behind it", trigger.words, cause_word(trigger.cause));
      return {};
  }
  return {};
}

}  // namespace

std::string cause_word(KeepCause cause) {
  for (const CauseWord& each : kWords)
    if (each.cause == cause) return std::string(each.word);
  return "unknown";
}

Result<KeepTrigger> parse_keep_trigger(const std::string& text) {
  KeepTrigger trigger;
  trigger.words = text;
  const size_t colon = text.find(':');
  const std::string_view word = std::string_view(text).substr(0, colon);
  const auto* const found = std::find_if(std::begin(kWords), std::end(kWords), [&](const CauseWord& each) {
    return each.word == word && each.cause != KeepCause::kKey;
  });
  if (found == std::end(kWords)) return fail("--trigger {}: give {}", text, kAll);
  trigger.cause = found->cause;
  const bool given = colon != std::string::npos;
  TACHO_TRY(parse_rest(given ? std::string_view(text).substr(colon + 1) : std::string_view(), given, trigger));
  return trigger;
}

std::vector<KeepTrigger> usual_keep_triggers() {
  return {{.cause = KeepCause::kSignal, .signal = SIGUSR1, .words = "signal:USR1"},
          {.cause = KeepCause::kCrash, .words = "crash"},
          {.cause = KeepCause::kProgram, .words = "program"},
          {.cause = KeepCause::kOutOfMemory, .words = "out-of-memory"}};
}

}  // namespace tacho::watch
