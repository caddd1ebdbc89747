// Puts the JSON into the page that the build embedded.
#include "metric/analysis_html.h"

#include "metric/analysis_json.h"
#include "report/html.h"

namespace tacho::metric {

/// web/analysis.html, generated at build time (gen/metric/analysis_page.cpp).
extern const std::string_view kAnalysisPage;

Result<std::string> to_html(std::span<const Analysis> runs) {
  // Enough for a browser; larger runs come with their evaluated tables only.
  constexpr std::size_t kMostInputValues = 4'000'000;
  return report::embed_json(kAnalysisPage, to_json(runs, {true, kMostInputValues}));
}

}  // namespace tacho::metric
