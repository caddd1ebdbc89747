// Options of a command as data, bound to a typed request. A row gives an option's spelling, meaning, values and
// destination; declare() hands the rows to the command's CommandOptions, which parse and print --help.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "cli/options/option_table.h"
#include "cli/shared/command_options.h"

namespace tacho::cli::options {

/// Where an option's value goes: to a member, or to a function that takes the text and may refuse it.
template <typename Request>
using Place = std::variant<bool& (*)(Request&), std::string& (*)(Request&), uint32_t& (*)(Request&), int& (*)(Request&),
                           double& (*)(Request&), std::vector<std::string>& (*)(Request&),
                           Status (*)(Request&, const std::string&)>;

enum class Shows : uint8_t { kNothing, kDefault };  ///< whether --help names the default

template <typename Request>
struct Row {
  std::string_view names;       ///< "-o,--output"; "!--no-x": a flag that makes its member false
  std::string_view group = {};  ///< heading in --help; empty = none
  std::string_view help = {};
  Place<Request> place;
  std::string_view value_name = {};  ///< in --help; empty = by type
  std::string_view choices = {};     ///< words with spaces between them; empty = any
  Shows shows = Shows::kNothing;
  double least = 0, most = 0;                               ///< limits of a number; both 0 = none
  std::string (*check)(const std::string& text) = nullptr;  ///< returns "" or what is wrong with the text
  std::string_view default_text = {};                       ///< for Shows::kDefault of a function; members know theirs
  bool optional_value = false;                              ///< the option may stand without a value, which is then ""
};

/// Declares `rows` on `app`. `refusal` gets the first error of a Place function: check it after parsing.
template <typename Request>
void declare(CommandOptions& app, std::span<const Row<Request>> rows, Request& request, std::optional<Error>& refusal) {
  std::string_view open_group;
  for (const Row<Request>& row : rows) {
    if (row.group != open_group) {
      open_group = row.group;
      app.open_group(std::string(row.group));
    }
    const auto declared = [&, names = std::string(row.names), help = std::string(row.help)] {
      if (const auto* const flag = std::get_if<bool& (*)(Request&)>(&row.place))
        return app.add_flag(names, (*flag)(request), help);
      if (const auto* const text = std::get_if<std::string& (*)(Request&)>(&row.place))
        return app.add_option(names, (*text)(request), help);
      if (const auto* const count = std::get_if<uint32_t& (*)(Request&)>(&row.place))
        return app.add_option(names, (*count)(request), help);
      if (const auto* const whole = std::get_if<int& (*)(Request&)>(&row.place))
        return app.add_option(names, (*whole)(request), help);
      if (const auto* const list = std::get_if<std::vector<std::string>& (*)(Request&)>(&row.place))
        return app.add_option(names, (*list)(request), help).expected(1, -1);
      if (const auto* const number = std::get_if<double& (*)(Request&)>(&row.place))
        return app.add_option(names, (*number)(request), help);
      return app.add_option_function(
          names,
          [&row, &request, &refusal](const std::string& value) {
            const auto taken = std::get<Status (*)(Request&, const std::string&)>(row.place)(request, value);
            if (!taken && !refusal) refusal = taken.error();
          },
          help);
    };
    CommandOption option = declared();
    if (row.optional_value) option.expected(0, 1);
    if (!row.choices.empty()) option.one_of(choices_of(row.choices));
    if (row.least != 0 || row.most != 0) {
      if (std::holds_alternative<double& (*)(Request&)>(row.place))
        option.between(row.least, row.most);
      else
        option.between(static_cast<int>(row.least), static_cast<int>(row.most));
    }
    if (row.check != nullptr) option.check(row.check);
    if (row.shows == Shows::kDefault) {
      if (row.default_text.empty())
        option.capture_default_str();
      else
        option.default_str(std::string(row.default_text));
    }
    if (!row.value_name.empty()) option.type_name(std::string(row.value_name));
  }
}

}  // namespace tacho::cli::options
