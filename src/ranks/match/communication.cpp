// Names and numbers of collectives (communication.h).
#include "ranks/match/communication.h"

#include <charconv>
#include <cstddef>

namespace tacho::ranks {
namespace {

// Lower case, letters and digits only.
std::string squeezed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z')
      out += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      out += c;
  }
  return out;
}

int64_t whole(std::string_view text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

}  // namespace

std::string_view operation_name(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all_reduce";
    case Operation::kAllGather:
      return "all_gather";
    case Operation::kReduceScatter:
      return "reduce_scatter";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kReduce:
      return "reduce";
    case Operation::kAllToAll:
      return "all_to_all";
    case Operation::kGather:
      return "gather";
    case Operation::kScatter:
      return "scatter";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kSendReceive:
      return "send_recv";
    case Operation::kUnknown:
      break;
  }
  return "collective";
}

Operation operation_of(std::string_view name) {
  const std::string text = squeezed(name);
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  if (has("allreduce")) return Operation::kAllReduce;
  if (has("allgather")) return Operation::kAllGather;
  if (has("reducescatter")) return Operation::kReduceScatter;
  if (has("alltoall")) return Operation::kAllToAll;
  if (has("broadcast") || has("bcast")) return Operation::kBroadcast;
  if (has("barrier")) return Operation::kBarrier;
  if (has("scatter")) return Operation::kScatter;
  if (has("gather")) return Operation::kGather;
  if (has("send") || has("recv")) return Operation::kSendReceive;
  if (has("reduce")) return Operation::kReduce;
  return Operation::kUnknown;
}

Operation operation_of_kernel(std::string_view kernel) {
  return operation_of(kernel.substr(0, kernel.find('(')));
}

int64_t bytes_of_type(std::string_view type) {
  const std::string text = squeezed(type);
  struct Size {
    std::string_view name;
    int64_t bytes;
  };
  static constexpr Size kSizes[] = {{"float", 4},
                                    {"half", 2},
                                    {"bfloat16", 2},
                                    {"double", 8},
                                    {"long", 8},
                                    {"int", 4},
                                    {"short", 2},
                                    {"char", 1},
                                    {"byte", 1},
                                    {"bool", 1},
                                    {"f16", 2},
                                    {"f32", 4},
                                    {"f64", 8},
                                    {"bf16", 2},
                                    {"float8e4m3fn", 1},
                                    {"float8e5m2", 1},
                                    {"uint8", 1},
                                    {"int8", 1},
                                    {"int32", 4},
                                    {"int64", 8},
                                    {"uint32", 4},
                                    {"uint64", 8},
                                    {"float16", 2},
                                    {"float32", 4},
                                    {"float64", 8},
                                    {"u8", 1},
                                    {"i8", 1},
                                    {"u32", 4},
                                    {"i32", 4},
                                    {"u64", 8},
                                    {"i64", 8},
                                    {"f8e4m3", 1},
                                    {"f8e5m2", 1},
                                    {"complexfloat", 8},
                                    {"complexdouble", 16},
                                    {"float8e4m3fnuz", 1},
                                    {"float8e5m2fnuz", 1}};
  for (const Size& size : kSizes)
    if (size.name == text) return size.bytes;
  return 0;
}

StatedCollective stated_by(std::string_view text) {
  StatedCollective stated;
  std::string_view name;
  while (!text.empty()) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) break;
    const std::string_view key = text.substr(0, equals);
    std::string_view rest = text.substr(equals + 1);
    size_t end;
    if (rest.starts_with('[')) {
      end = rest.find(']');
      end = end == std::string_view::npos ? rest.size() : end + 1;
    } else {
      end = std::min(rest.find(", "), rest.size());
    }
    const std::string_view value = rest.substr(0, end);
    rest.remove_prefix(end);
    if (rest.starts_with(", ")) rest.remove_prefix(2);
    text = rest;
    if (key == "Collective name") name = value;
    if (key == "In msg nelems") stated.in_elements = whole(value);
    if (key == "Out msg nelems") stated.out_elements = whole(value);
    if (key == "Group size") stated.group_size = whole(value);
    if (key == "Process Group Name") stated.group = value;
    if (key == "Process Group Description") stated.description = value;
    if (key == "Process Group Ranks") stated.members = value;
    if (key == "Seq") stated.number = whole(value);
    if (key == "Comms Id" && !value.empty() && value != "0")
      stated.identity = std::max<uint64_t>(std::hash<std::string_view>{}(value), 1);
    if (key == "dtype")
      if (const int64_t bytes = bytes_of_type(value); bytes > 0) stated.element_bytes = bytes;
  }
  stated.operation = operation_of(name);
  return stated;
}

std::vector<int64_t> members_of(std::string_view text) {
  std::vector<int64_t> members;
  if (!text.starts_with('[') || !text.ends_with(']')) return {};
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    const size_t dash = word.find('-');
    const int64_t member = whole(word.substr(0, dash));
    const int64_t last = dash == std::string_view::npos ? member : whole(word.substr(dash + 1));
    constexpr int64_t kMostMembers = 1 << 22;
    if (member < 0 || last < member || last - member >= kMostMembers) return {};
    for (int64_t one = member; one <= last; ++one) members.push_back(one);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return members;
}

int64_t message_bytes(const StatedCollective& stated, int64_t ranks) {
  if (stated.element_bytes <= 0) return 0;
  int64_t elements = stated.in_elements;
  if (stated.operation == Operation::kAllGather) {
    elements = stated.out_elements > 0               ? stated.out_elements
               : stated.in_elements > 0 && ranks > 0 ? stated.in_elements * ranks
                                                     : -1;
  } else if (stated.operation == Operation::kBroadcast || stated.operation == Operation::kReduce) {
    elements = std::max(stated.in_elements, stated.out_elements);
  }
  int64_t bytes = 0;
  if (elements <= 0 || __builtin_mul_overflow(elements, stated.element_bytes, &bytes)) return 0;
  return bytes;
}

double bus_factor(Operation operation, int64_t ranks) {
  if (ranks < 2) return 0;
  const auto n = static_cast<double>(ranks);
  switch (operation) {
    case Operation::kAllReduce:
      return 2 * (n - 1) / n;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
    case Operation::kAllToAll:
    case Operation::kGather:
    case Operation::kScatter:
      return (n - 1) / n;
    case Operation::kBroadcast:
    case Operation::kReduce:
    case Operation::kSendReceive:
      return 1;
    case Operation::kBarrier:
    case Operation::kUnknown:
      break;
  }
  return 0;
}

}  // namespace tacho::ranks
