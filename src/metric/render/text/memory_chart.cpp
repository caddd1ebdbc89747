// Drawing of the memory chart on a canvas of characters.
#include "metric/render/text/memory_chart.h"

#include <cmath>
#include <vector>

#include "report/text.h"

namespace tacho::metric {

namespace {

class Canvas {
 public:
  Canvas(size_t width, size_t height) : width_(width), cells_(height, std::vector<std::string>(width, " ")) {}

  void put(size_t x, size_t y, std::string_view text) {
    while (!text.empty() && x < width_) {
      size_t length = 1;
      while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) ++length;
      cells_[y][x++] = std::string(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  void put_right(size_t end, size_t y, std::string_view text) {
    const size_t width = report::display_width(text);
    put(end >= width ? end - width : 0, y, text);
  }

  void box(size_t x, size_t y, size_t width, size_t height, std::string_view title) {
    for (size_t i = 1; i + 1 < width; ++i) {
      put(x + i, y, "─");
      put(x + i, y + height - 1, "─");
    }
    for (size_t i = 1; i + 1 < height; ++i) {
      put(x, y + i, "│");
      put(x + width - 1, y + i, "│");
    }
    put(x, y, "┌");
    put(x + width - 1, y, "┐");
    put(x, y + height - 1, "└");
    put(x + width - 1, y + height - 1, "┘");
    put(x + 2, y, " " + std::string(title) + " ");
  }

  // A line of a box: words on the left, figure on the right.
  void entry(size_t x, size_t y, size_t width, std::string_view name, std::string_view figure) {
    // Where both do not fit, the unit goes.
    if (report::display_width(name) + report::display_width(figure) + 5 > width)
      figure = figure.substr(0, figure.find(' '));
    put(x + 2, y, name);
    put_right(x + width - 2, y, figure);
  }

  // From box to box; the label and its figure stand in the line.
  void arrow(size_t x, size_t y, size_t width, std::string_view label, std::string_view figure, bool back) {
    for (size_t i = 0; i < width; ++i) put(x + i, y, "─");
    put(back ? x : x + width - 1, y, back ? "◀" : "▶");
    const std::string text = " " + std::string(label) + " " + std::string(figure) + " ";
    put(x + (width - std::min(width, report::display_width(text))) / 2, y, text);
  }

  std::string text() const {
    std::string out;
    for (const auto& row : cells_) {
      std::string line;
      for (const std::string& cell : row) line += cell;
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  size_t width_;
  std::vector<std::vector<std::string>> cells_;
};

// The chart's value of a metric by slug, as text; "—" where there is none.
class Figures {
 public:
  explicit Figures(const ChartLookup& value) : value_(value) {}
  std::string operator()(std::string_view slug, std::string_view unit = "") const {
    const std::optional<double> number = value_(slug);
    if (!number) return "—";
    const std::string text =
        std::fabs(*number) < 1e5 ? report::format_fixed(*number, 0) : report::format_si(*number, 1);
    return unit.empty() ? text : text + " " + std::string(unit);
  }

 private:
  const ChartLookup& value_;
};

constexpr size_t kFirst = 29, kFirstWidth = 17;    // arrows to the first-level caches
constexpr size_t kCache = 46, kCacheWidth = 20;    // the caches
constexpr size_t kSecond = 66, kSecondWidth = 17;  // arrows to L2
constexpr size_t kL2 = 83, kL2Width = 18;
constexpr size_t kFabric = 104, kFabricWidth = 16;

void draw_compute_units(Canvas& canvas, const Figures& figure) {
  constexpr size_t kUnits = 0, kUnitsWidth = 29;
  canvas.box(kUnits, 0, kUnitsWidth, 27, "Compute units");
  struct Line {
    std::string_view name, slug, unit;
  };
  size_t y = 1;
  const auto list = [&](std::initializer_list<Line> lines) {
    for (const Line& line : lines) canvas.entry(kUnits, y++, kUnitsWidth, line.name, figure(line.slug, line.unit));
  };
  canvas.entry(kUnits, y++, kUnitsWidth, "Active CUs", figure("chart-active-cus") + " of " + figure("chart-num-cus"));
  list({{"Waves per CU", "chart-wavefront-occupancy", ""},
        {"Wave life", "chart-wave-life", "cycles"},
        {"Wavefronts", "chart-wavefronts", ""},
        {"Workgroups", "chart-workgroups", ""},
        {"VGPRs", "chart-vgprs", ""},
        {"SGPRs", "chart-sgprs", ""},
        {"LDS allocation", "chart-lds-allocation", "B"},
        {"Scratch", "chart-scratch-allocation", "B"}});
  ++y;
  canvas.put(kUnits + 2, y++, "Instructions");
  list({{"  VALU", "chart-valu", ""},
        {"  MFMA", "chart-mfma", ""},
        {"  SALU", "chart-salu", ""},
        {"  SMEM", "chart-smem", ""},
        {"  VMEM", "chart-vmem", ""},
        {"  LDS", "chart-lds", ""},
        {"  GWS", "chart-gws", ""},
        {"  Branch", "chart-branch", ""}});
}

void draw_first_caches(Canvas& canvas, const Figures& figure) {
  canvas.box(kCache, 0, kCacheWidth, 4, "LDS");
  canvas.entry(kCache, 1, kCacheWidth, "Utilization", figure("chart-lds-utilization", "%"));
  canvas.entry(kCache, 2, kCacheWidth, "Latency", figure("chart-lds-latency", "cy"));
  canvas.arrow(kFirst, 2, kFirstWidth, "req", figure("chart-lds-requests"), false);

  canvas.box(kCache, 5, kCacheWidth, 7, "vL1D");
  canvas.entry(kCache, 6, kCacheWidth, "Hit rate", figure("chart-vl1d-hit-rate", "%"));
  canvas.entry(kCache, 7, kCacheWidth, "Latency", figure("chart-vl1d-latency", "cy"));
  canvas.entry(kCache, 8, kCacheWidth, "Coalescing", figure("chart-vl1d-coalescing", "%"));
  canvas.entry(kCache, 9, kCacheWidth, "Stalled", figure("chart-vl1d-stall", "%"));
  canvas.arrow(kFirst, 7, kFirstWidth, "rd", figure("chart-vl1d-reads"), true);
  canvas.arrow(kFirst, 8, kFirstWidth, "wr", figure("chart-vl1d-writes"), false);
  canvas.arrow(kFirst, 9, kFirstWidth, "atom", figure("chart-vl1d-atomics"), false);
  canvas.arrow(kSecond, 7, kSecondWidth, "rd", figure("chart-vl1d-l2-reads"), true);
  canvas.arrow(kSecond, 8, kSecondWidth, "wr", figure("chart-vl1d-l2-writes"), false);
  canvas.arrow(kSecond, 9, kSecondWidth, "atom", figure("chart-vl1d-l2-atomics"), false);

  canvas.box(kCache, 13, kCacheWidth, 6, "Scalar L1D");
  canvas.entry(kCache, 14, kCacheWidth, "Hit rate", figure("chart-sl1d-hit-rate", "%"));
  canvas.entry(kCache, 15, kCacheWidth, "Latency", figure("chart-sl1d-latency", "cy"));
  canvas.arrow(kFirst, 15, kFirstWidth, "rd", figure("chart-sl1d-reads"), true);
  canvas.arrow(kSecond, 14, kSecondWidth, "rd", figure("chart-sl1d-l2-reads"), true);
  canvas.arrow(kSecond, 15, kSecondWidth, "wr", figure("chart-sl1d-l2-writes"), false);
  canvas.arrow(kSecond, 16, kSecondWidth, "atom", figure("chart-sl1d-l2-atomics"), false);

  canvas.box(kCache, 21, kCacheWidth, 5, "L1 instruction");
  canvas.entry(kCache, 22, kCacheWidth, "Hit rate", figure("chart-l1i-hit-rate", "%"));
  canvas.entry(kCache, 23, kCacheWidth, "Latency", figure("chart-l1i-latency", "cy"));
  canvas.arrow(kFirst, 23, kFirstWidth, "fetch", figure("chart-l1i-fetches"), true);
  canvas.arrow(kSecond, 23, kSecondWidth, "rd", figure("chart-l1i-l2-reads"), true);
}

void draw_l2_and_memory(Canvas& canvas, const Figures& figure) {
  canvas.box(kL2, 5, kL2Width, 21, "L2");
  canvas.entry(kL2, 7, kL2Width, "Reads", figure("chart-l2-reads"));
  canvas.entry(kL2, 8, kL2Width, "Writes", figure("chart-l2-writes"));
  canvas.entry(kL2, 9, kL2Width, "Atomics", figure("chart-l2-atomics"));
  canvas.entry(kL2, 11, kL2Width, "Hit rate", figure("chart-l2-hit-rate", "%"));
  canvas.entry(kL2, 12, kL2Width, "Rd lat", figure("chart-l2-read-latency", "cy"));
  canvas.entry(kL2, 13, kL2Width, "Wr lat", figure("chart-l2-write-latency", "cy"));

  // L2 to the fabric: three arrows, their figures in the fabric's box, as the way is short.
  canvas.box(kFabric, 5, kFabricWidth, 12, "Fabric");
  canvas.entry(kFabric, 7, kFabricWidth, "rd", figure("chart-fabric-l2-reads"));
  canvas.entry(kFabric, 8, kFabricWidth, "wr", figure("chart-fabric-l2-writes"));
  canvas.entry(kFabric, 9, kFabricWidth, "atom", figure("chart-fabric-l2-atomics"));
  canvas.put(kL2 + kL2Width, 7, "◀──");
  canvas.put(kL2 + kL2Width, 8, "──▶");
  canvas.put(kL2 + kL2Width, 9, "──▶");
  canvas.put(kFabric + 2, 11, "Latency");
  canvas.entry(kFabric, 12, kFabricWidth, "rd", figure("chart-fabric-read-latency", "cy"));
  canvas.entry(kFabric, 13, kFabricWidth, "wr", figure("chart-fabric-write-latency", "cy"));
  canvas.entry(kFabric, 14, kFabricWidth, "atom", figure("chart-fabric-atomic-latency", "cy"));

  canvas.put(kFabric + 4, 17, "▲");
  canvas.put(kFabric + 10, 17, "│");
  canvas.put(kFabric + 4, 18, "│");
  canvas.put(kFabric + 10, 18, "▼");
  canvas.box(kFabric, 19, kFabricWidth, 6, "HBM");
  canvas.entry(kFabric, 21, kFabricWidth, "rd", figure("chart-hbm-reads"));
  canvas.entry(kFabric, 22, kFabricWidth, "wr", figure("chart-hbm-writes"));
}

}  // namespace

std::string memory_chart(const ChartLookup& value) {
  Canvas canvas(kMemoryChartWidth, 27);
  const Figures figure(value);
  draw_compute_units(canvas, figure);
  draw_first_caches(canvas, figure);
  draw_l2_and_memory(canvas, figure);
  return canvas.text();
}

}  // namespace tacho::metric
