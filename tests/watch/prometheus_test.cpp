// The page of metrics: its form, and that its labels are bounded and its counters never go back.
#include "watch/prometheus.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace tacho::watch {
namespace {

RowSums kernel(const std::string& name, uint64_t count) {
  RowSums row;
  row.kind = event::WatchKind::kKernel;
  row.name = name;
  row.count = count;
  row.levels[1] = {count, 2, 3000, 0};
  row.buckets[event::watch_bucket(1500)] = 4;
  row.stood_ns = 6000;
  return row;
}

TEST(Prometheus, Histogram) {
  WatchSnapshot snapshot;
  snapshot.rows = {kernel("k", 5)};
  PrometheusPage page;
  const std::string text = page.text(snapshot, std::nullopt);
  EXPECT_NE(text.find("# TYPE tacho_kernel_launches_total counter\ntacho_kernel_launches_total{kernel=\"k\"} 5\n"),
            std::string::npos);
  EXPECT_NE(text.find("tacho_kernel_duration_seconds_bucket{kernel=\"k\",le=\"1.024e-06\"} 0\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("tacho_kernel_duration_seconds_bucket{kernel=\"k\",le=\"2.048e-06\"} 4\n"), std::string::npos);
  EXPECT_NE(text.find("tacho_kernel_duration_seconds_bucket{kernel=\"k\",le=\"+Inf\"} 4\n"), std::string::npos);
  EXPECT_NE(text.find("tacho_kernel_duration_seconds_sum{kernel=\"k\"} 6e-06\n"), std::string::npos);
  EXPECT_NE(text.find("tacho_kernel_duration_seconds_count{kernel=\"k\"} 4\n"), std::string::npos);
}

TEST(Prometheus, ShapesOfAKernelShareALabel) {
  WatchSnapshot snapshot;
  snapshot.rows = {kernel("k", 5), kernel("k", 7)};
  snapshot.rows[0].grid[0] = 64;
  snapshot.rows[1].grid[0] = 128;
  EXPECT_NE(PrometheusPage().text(snapshot, std::nullopt).find("launches_total{kernel=\"k\"} 12\n"), std::string::npos);
}

TEST(Prometheus, NamesBeyondTheLimitAreOther) {
  WatchSnapshot snapshot;
  for (int i = 0; i < 5; ++i) snapshot.rows.push_back(kernel(fmt::format("k{}", i), 1));
  PrometheusPage page(3);
  EXPECT_NE(page.text(snapshot, std::nullopt).find("launches_total{kernel=\"other\"} 2\n"), std::string::npos);
  // One of the first three ends up last: it keeps its label.
  std::swap(snapshot.rows[0], snapshot.rows[4]);
  const std::string text = page.text(snapshot, std::nullopt);
  EXPECT_NE(text.find("launches_total{kernel=\"k0\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("launches_total{kernel=\"other\"} 2\n"), std::string::npos);
}

TEST(Prometheus, OpenMetrics) {
  WatchSnapshot snapshot;
  snapshot.rows = {kernel("k", 5), kernel("k", 7)};
  for (RowSums& row : snapshot.rows) row.grid[0] = row.group[0] = 64;
  snapshot.rows[0].longest_ns = 1500;
  snapshot.rows[1].longest_ns = 1700;
  snapshot.rows[1].grid[1] = 2;
  const std::string text = PrometheusPage().text(snapshot, std::nullopt, MetricsForm::kOpenMetrics);
  EXPECT_NE(text.find("# TYPE tacho_kernel_launches counter\ntacho_kernel_launches_total{kernel=\"k\"} 12\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("_bucket{kernel=\"k\",le=\"2.048e-06\"} 8 # {shape=\"64x2/64\"} 1.7e-06\n"), std::string::npos);
  EXPECT_NE(text.find("_bucket{kernel=\"k\",le=\"4.096e-06\"} 8\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("# EOF\n"));
}

TEST(Prometheus, TheFormThatAClientWants) {
  EXPECT_EQ(wanted_form(""), MetricsForm::kPrometheus);
  EXPECT_EQ(wanted_form("*/*"), MetricsForm::kPrometheus);
  EXPECT_EQ(wanted_form("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                        "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            MetricsForm::kOpenMetrics);
  EXPECT_EQ(wanted_form("application/openmetrics-text; version=0.0.1, text/plain; q=0.5"), MetricsForm::kPrometheus);
  EXPECT_EQ(wanted_form("application/openmetrics-text;q=0.2, text/plain;q=0.5"), MetricsForm::kPrometheus);
  EXPECT_EQ(wanted_form("application/openmetrics-text;q=0, */*"), MetricsForm::kPrometheus);
}

TEST(Prometheus, TheRowOfOtherKernelsIsOther) {
  WatchSnapshot snapshot;
  snapshot.rows = {kernel(kOtherKernels, 3), kernel("k", 1)};
  EXPECT_NE(PrometheusPage().text(snapshot, std::nullopt).find("launches_total{kernel=\"other\"} 3\n"),
            std::string::npos);
}

TEST(Prometheus, GpusInBaseUnits) {
  vendor::GpuReading clock;
  clock.name = "GPU Core Clock [1]";
  clock.gpu = 1;
  clock.value = 1980;
  const std::string text = PrometheusPage().text({}, std::nullopt, MetricsForm::kPrometheus, {clock});
  EXPECT_NE(text.find("# TYPE tacho_gpu_core_clock_hertz gauge\ntacho_gpu_core_clock_hertz{gpu=\"1\"} 1980000000\n"),
            std::string::npos)
      << text;
}

TEST(Prometheus, Labels) {
  EXPECT_EQ(prometheus_label("a\\b\"c"), "a\\\\b\\\"c");
  EXPECT_EQ(prometheus_label("a\nb"), "a b");
  EXPECT_EQ(prometheus_label("\xff"), "\xef\xbf\xbd");
}

}  // namespace
}  // namespace tacho::watch
