// Pages with data inside: how a report becomes one self-contained HTML file; and text within markup.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho::report {

/// The placeholder for the data in a page.
constexpr std::string_view kJsonPlace = "/*TACHO_JSON*/null";

/// The page with `json` in the place of kJsonPlace, made safe for a script element. Fails when the page has no such
/// place.
Result<std::string> embed_json(std::string_view page, std::string_view json);

/// Whether the file is a page that tacho made, so that a newer one may take its place.
bool is_own_page(const std::string& path);

/// The text as XML, HTML and SVG hold it, between tags or in a quoted attribute.
std::string markup_text(std::string_view text);

}  // namespace tacho::report
