// Embedding of data in pages, and of text in markup.
#include "report/html.h"

#include <fstream>

namespace tacho::report {

Result<std::string> embed_json(std::string_view page, std::string_view json) {
  const size_t at = page.find(kJsonPlace);
  if (at == std::string_view::npos) return fail("the page has no place for the data ({})", kJsonPlace);
  std::string out(page.substr(0, at));
  out.reserve(page.size() + json.size() + json.size() / 16);
  for (size_t i = 0; i < json.size(); ++i) {
    // "</script>" and "<!--" inside a string would end or change the element.
    if (json[i] == '<')
      out += "\\u003c";
    else
      out += json[i];
  }
  out += page.substr(at + kJsonPlace.size());
  return out;
}

bool is_own_page(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(4096, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  return head.find("<meta name=\"generator\" content=\"tacho\">") != std::string::npos;
}

std::string markup_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

}  // namespace tacho::report
