// Puts the JSON into the page that the build embedded.
#include "metric/render/page/html.h"

#include "metric/render/page/json.h"
#include "report/html.h"

namespace tacho::metric {

/// The page that is built from web/, as text (gen/metric/kAnalysisPage.cpp).
extern const std::string_view kAnalysisPage;

Result<std::string> to_html(std::span<const Analysis> runs) {
  return report::embed_json(kAnalysisPage, to_json(runs, {false, true}));
}

}  // namespace tacho::metric
