// Numbers in sentences: "1 call", "2 calls".
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace tacho {

/// `count` and the words for one or for another number of things; a verb may belong to them ("row has", "rows have").
template <std::integral Count>
std::string how_many(Count count, std::string_view one, std::string_view several) {
  return std::to_string(count).append(" ").append(count == 1 ? one : several);
}

/// "3 of 40 dispatches have", "1 of 40 dispatches has": the first number rules the verb. `all` is how_many() of all.
template <std::integral Count>
std::string how_many_of(Count count, std::string_view all, std::string_view one, std::string_view several) {
  return std::to_string(count).append(" of ").append(all).append(" ").append(count == 1 ? one : several);
}

}  // namespace tacho
