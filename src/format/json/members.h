// Members of flat JSON objects, such as those in rocpd's columns extdata.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tacho::format::json {

/// The text of a member of a flat JSON object; false if it has none that is text.
bool text_member(std::string_view object, std::string_view key, std::string& value);
/// The whole number of a member; event::kUnknown if it has none that is one.
int64_t number_member(std::string_view object, std::string_view key);

/// The same for several members, in one go through the object: values[i] is that of keys[i].
void number_members(std::string_view object, std::span<const std::string_view> keys, std::span<int64_t> values);

/// The JSON of a member, whatever it is; "" if there is none.
std::string json_member(std::string_view object, std::string_view key);

}  // namespace tacho::format::json
