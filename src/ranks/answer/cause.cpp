// Causes of lateness and their words (cause.h, answers.h).
#include "ranks/answer/cause.h"

#include "base/text/demangle.h"
#include "ranks/match/late_senders.h"
#include "report/text.h"

namespace tacho::ranks {
namespace {

template <typename Value>
int64_t median_of_others(std::span<const Participant> all, size_t one, Value value) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < all.size(); ++i)
    if (i != one) values.push_back(value(all[i].arrival));
  return median_of(std::move(values));
}

// The name on which `one` spent most time beyond the others' median, and how much.
template <size_t N>
void most_beyond(std::span<const Participant> all, size_t one, NamedTime (Arrival::*list)[N], uint64_t& name,
                 int64_t& beyond) {
  name = 0;
  beyond = 0;
  for (const NamedTime& own : all[one].arrival.*list) {
    if (own.name == 0) continue;
    const int64_t others = median_of_others(all, one, [&](const Arrival& arrival) {
      for (const NamedTime& theirs : arrival.*list)
        if (theirs.name == own.name) return theirs.time;
      return int64_t{0};
    });
    if (own.time - others > beyond) {
      beyond = own.time - others;
      name = own.name;
    }
  }
}

}  // namespace

Cause cause_of(std::span<const Participant> all, size_t last, int64_t late, const Cause* before, int64_t late_before,
               std::span<const Waited> messages) {
  Cause cause;
  const Arrival& own = all[last].arrival;
  cause.by_host = own.by_host;
  const auto beyond = [&](auto value) { return value(own) - median_of_others(all, last, value); };
  const int64_t compute = beyond([](const Arrival& a) { return a.compute; });
  const int64_t copy = beyond([](const Arrival& a) { return a.copy; });
  const int64_t idle = beyond([](const Arrival& a) { return a.idle; });
  const int64_t host = beyond([](const Arrival& a) { return a.host; });
  const int64_t unlaunched = beyond([](const Arrival& a) { return a.unlaunched; });
  const int64_t kernels = beyond([](const Arrival& a) { return a.kernels; });
  const int64_t stretch = beyond([](const Arrival& a) { return a.start - a.from; });
  const int64_t earlier = late - stretch;  // how much later it began its stretch
  const int64_t mpi = beyond([](const Arrival& a) { return a.mpi; });
  const int64_t most = std::max({compute, copy, idle, mpi, earlier});
  if (most * 2 < late) {
    cause.kind = Cause::Kind::kUnknown;
    return cause;
  }
  cause.time = std::min(most, late);
  // The others ran their share of the work while they waited for this rank at the collective before.
  if (most == compute && before != nullptr && before->kind != Cause::Kind::kNone &&
      before->kind != Cause::Kind::kUnknown && (late_before >= late || before->carried) &&
      (kernels <= 0 || (before->kind == Cause::Kind::kMoreKernels && kernels == before->kernels))) {
    cause = *before;
    cause.carried = true;
    cause.time = std::min(most, late);
    return cause;
  }
  if (most == compute) {
    cause.kind = kernels > 0 ? Cause::Kind::kMoreKernels : Cause::Kind::kLongerKernel;
    cause.kernels = std::max<int64_t>(kernels, 0);
    most_beyond(all, last, &Arrival::kernel, cause.name, cause.name_time);
  } else if (most == copy) {
    cause.kind = Cause::Kind::kCopies;
  } else if (most == mpi) {
    std::vector<int64_t> others;
    for (size_t i = 0; i < messages.size(); ++i)
      if (i != last) others.push_back(messages[i].time);
    if ((messages[last].time - median_of(std::move(others))) * 2 >= mpi) {
      cause.kind = Cause::Kind::kMessages;
      cause.peer = messages[last].blamed;  // a run; the caller knows its rank
    } else {
      cause.kind = Cause::Kind::kMpi;
      most_beyond(all, last, &Arrival::call, cause.name, cause.name_time);
    }
  } else if (most == idle) {
    if (host * 2 >= idle) {
      cause.kind = Cause::Kind::kHost;
      uint64_t call = 0, range = 0;
      int64_t in_call = 0, in_range = 0;
      most_beyond(all, last, &Arrival::call, call, in_call);
      most_beyond(all, last, &Arrival::range, range, in_range);
      if (in_call * 2 >= late) {
        cause.name = call;
        cause.name_time = in_call;
      } else if (in_range * 2 >= late) {
        cause.name = range;
        cause.name_time = in_range;
        cause.range = true;
      }
    } else {
      cause.kind = unlaunched * 2 >= idle ? Cause::Kind::kIdle : Cause::Kind::kUnknown;
    }
  } else {
    cause.kind = own.previous_communicator == Arrival::kNobody ? Cause::Kind::kBegan : Cause::Kind::kEarlier;
  }
  return cause;
}

std::string short_name(const std::string& full) {
  std::string name = demangle(full);
  if (name.starts_with("void ")) name.erase(0, 5);
  for (const char bracket : {'<', '('})
    if (const size_t at = name.find(bracket); at != std::string::npos && at > 0) name.resize(at);
  return report::shortened(name, 40);
}

std::string cause_text(const Cause& cause, const Names& names) {
  const std::string name = cause.name != 0 ? short_name(names.text(cause.name)) : std::string();
  std::string text;
  switch (cause.kind) {
    case Cause::Kind::kNone:
      return "";
    case Cause::Kind::kMoreKernels:
      text = fmt::format("{} more kernel{}", cause.kernels, cause.kernels == 1 ? "" : "s");
      if (!name.empty()) text += fmt::format(" (most: {})", name);
      break;
    case Cause::Kind::kLongerKernel:
      text = name.empty() ? std::string("longer kernels")
                          : fmt::format("longer kernels: {} +{}", name,
                                        report::format_duration(static_cast<double>(cause.name_time)));
      break;
    case Cause::Kind::kCopies:
      text = "copies";
      break;
    case Cause::Kind::kMessages:
      text = fmt::format("waited for rank {}'s messages", cause.peer);
      break;
    case Cause::Kind::kMpi:
      text = name.empty() ? std::string("longer in MPI")
                          : fmt::format("longer in MPI: {} +{}", name,
                                        report::format_duration(static_cast<double>(cause.name_time)));
      break;
    case Cause::Kind::kLateSends:
      text = fmt::format("late messages, most to rank {}: one {} late", cause.peer,
                         report::format_duration(static_cast<double>(cause.time)));
      if (const std::string did = meanwhile_text(cause.meanwhile, names); !did.empty())
        text += fmt::format(" (meanwhile: {})", did);
      break;
    case Cause::Kind::kHost:
      if (cause.by_host && (name.empty() || cause.range))
        text = name.empty() ? std::string("its own code on the host") : "its code on the host, in " + name;
      else if (name.empty() && cause.place != 0)
        text = fmt::format("the host launched late: {} for {}", names.text(cause.place),
                           report::format_duration(static_cast<double>(cause.place_time)));
      else if (name.empty() && cause.part_name != 0)
        text = fmt::format("the host launched late, {:.0f} % of it in {}", 100 * cause.part,
                           short_name(names.text(cause.part_name)));
      else if (name.empty())
        text = "the host launched late; why is unknown";
      else if (cause.range)
        text = "the host launched late, in " + name;
      else
        text = fmt::format("the host: {} +{}", name, report::format_duration(static_cast<double>(cause.name_time)));
      break;
    case Cause::Kind::kIdle:
      text = "its GPU idled; unknown why (no API calls in the trace)";
      break;
    case Cause::Kind::kEarlier:
      text = cause.by_host ? "it left the collective before later" : "late from another group's collective";
      break;
    case Cause::Kind::kBegan:
      text = cause.by_host ? "it began later; the trace does not show why"
                           : "its GPU work began later; the trace does not show why";
      break;
    case Cause::Kind::kUnknown:
      return "unknown";
  }
  if (cause.carried) text += ", carried over";
  return text;
}

}  // namespace tacho::ranks
