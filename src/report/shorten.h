// Names and paths that are too long for their column: cut where they say least, and so that different ones stay
// different.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::report {

/// At most `width` columns: the beginning and the end of the text, an ellipsis between them.
std::string shortened_middle(std::string_view text, size_t width);

/// The text with each word that is longer than `width` columns cut likewise.
std::string with_short_words(std::string_view text, size_t width);

/// At most `width` columns from the end of a path: "…/nn/module.py:58", then "module.py:58", then its last characters.
std::string shortened_path(std::string_view path, size_t width, char separator = '/');

/// A C++ signature in fewer words. Level 1: without return type, parameters as "(…)". Level 2: also without namespaces
/// and enclosing classes. Level 3: also without "(…)". Any other text unchanged.
std::string compact_name(std::string_view name, int level);

/// Each name in at most `width` columns; names that differ give texts that differ. A name that fits stays as it is.
/// Others lose their return type, parameters and namespaces, then their middle; where that makes two alike, the part in
/// which they differ is shown. Contract: width >= 8 for the promise to hold.
std::vector<std::string> shortened_apart(std::span<const std::string> names, size_t width);

}  // namespace tacho::report
