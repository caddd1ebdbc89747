// Options of a command as data, bound to a typed request. A row gives an option's spelling, meaning, values and
// destination; declare() hands the rows to the command's CommandOptions, which parse and print --help.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "cli/options/option_table.h"
#include "cli/shared/command_options.h"

namespace tacho::cli::options {

/// Where an option's value goes: to a member, or to a function that takes the text and may refuse it.
template <typename Request>
using Place = std::variant<bool& (*)(Request&), std::string& (*)(Request&), uint32_t& (*)(Request&), int& (*)(Request&),
                           size_t& (*)(Request&), double& (*)(Request&), std::optional<std::string>& (*)(Request&),
                           std::vector<std::string>& (*)(Request&), Status (*)(Request&, const std::string&)>;

/// Properties that only some options have.
struct Details {
  bool shows_default = false;                               ///< --help names the default
  std::string_view default_text = {};                       ///< for --help; empty = what the member holds
  double least = 0, most = 0;                               ///< limits of a number; both 0 = none
  std::string (*check)(const std::string& text) = nullptr;  ///< returns "" or what is wrong with the text
  bool optional_value = false;                              ///< the option may stand without a value, which is then ""

  constexpr Details within(double low, double high) const {
    Details more = *this;
    more.least = low;
    more.most = high;
    return more;
  }
};
/// --help names the default: what the member holds, or `text`.
constexpr Details shows_default(std::string_view text = {}) {
  return {.shows_default = true, .default_text = text};
}
constexpr Details within(double least, double most) {
  return Details{}.within(least, most);
}
constexpr Details checked(std::string (*check)(const std::string& text)) {
  return {.check = check};
}
constexpr Details optional_value() {
  return {.optional_value = true};
}

template <typename Request>
struct OptionRow {
  std::string_view names;  ///< "-o,--output"; "!--no-x": a flag that makes its member false
  Place<Request> place;
  std::string_view help = {};
  std::string_view value_name = {};  ///< in --help; empty = by type
  std::string_view choices = {};     ///< words with spaces between them; empty = any
  Details details = {};
};

/// The heading in --help of the rows behind it.
template <typename Request>
constexpr OptionRow<Request> heading(std::string_view text) {
  return {{}, static_cast<bool& (*)(Request&)>(nullptr), text};
}

template <typename Class, typename Member>
Class class_of(Member Class::*);

/// The member of a request that a path of members leads to, as a Place: at<&Request::launch, &LaunchOptions::preload>.
template <auto First, auto... Rest>
constexpr auto* at = +[](decltype(class_of(First))& request) -> auto& {
  return ((request.*First).*....*Rest);
};

/// Declared options by their long names, "--output".
using Declared = std::vector<std::pair<std::string, CommandOption>>;

/// The long one of "-o,--output".
inline std::string long_name(std::string_view names) {
  std::string_view best;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string_view name = names.substr(begin, end - begin);
    if (best.empty() || (name.starts_with("--") && !best.starts_with("--"))) best = name;
    begin = end + 1;
  }
  return std::string(best.substr(best.starts_with('!') ? 1 : 0));
}

/// Declares `rows` on `app`. `refusal` gets the first error of a Place function: check it after parsing.
template <typename Request>
Declared declare(CommandOptions& app, std::span<const OptionRow<Request>> rows, Request& request,
                 std::optional<Error>& refusal) {
  Declared all;
  for (const OptionRow<Request>& row : rows) {
    if (row.names.empty()) {
      app.open_group(std::string(row.help));
      continue;
    }
    const std::string names(row.names), help(row.help);
    const auto declared = [&](auto place) {
      using Value = std::remove_cvref_t<decltype(*place)>;
      if constexpr (std::is_invocable_v<Value, Request&, const std::string&>) {
        return app.add_option_function(
            names,
            [place, &request, &refusal](const std::string& value) {
              const Status taken = place(request, value);
              if (!taken && !refusal) refusal = taken.error();
            },
            help);
      } else {
        auto& member = place(request);
        using Member = std::remove_reference_t<decltype(member)>;
        if constexpr (std::is_same_v<Member, bool>)
          return app.add_flag(names, member, help);
        else if constexpr (std::is_same_v<Member, std::vector<std::string>>)
          return app.add_option(names, member, help).expected(1, -1);
        else
          return app.add_option(names, member, help);
      }
    };
    CommandOption option = std::visit(declared, row.place);
    const Details& details = row.details;
    if (details.optional_value) option.expected(0, 1);
    if (!row.choices.empty()) option.one_of(choices_of(row.choices));
    if (details.least != 0 || details.most != 0) {
      if (std::holds_alternative<double& (*)(Request&)>(row.place))
        option.between(details.least, details.most);
      else
        option.between(static_cast<int>(details.least), static_cast<int>(details.most));
    }
    if (details.check != nullptr) option.check(details.check);
    if (details.shows_default) {
      if (details.default_text.empty())
        option.capture_default_str();
      else
        option.default_str(std::string(details.default_text));
    }
    if (!row.value_name.empty()) option.type_name(std::string(row.value_name));
    all.emplace_back(long_name(row.names), option);
  }
  return all;
}

}  // namespace tacho::cli::options
