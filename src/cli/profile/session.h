// One profile run in progress: log.txt, the terminal's output, and the folder's files.
#pragma once

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cli/profile/face.h"
#include "counter/provider.h"
#include "workload/writer.h"

namespace tacho::cli {

class ProfileSession : public counter::Observer {
 public:
  struct Options {
    ProfileFace face = ProfileFace::kTacho;
    bool quiet = false;
    bool rocpd = false;         ///< write results_<n>.csv, one row per counter
    bool retain_rocpd = false;  ///< also write results_<n>.db
    counter::Device device;
    std::vector<std::string> command;
    std::string tool;  ///< the name after "|->" in log.txt
  };

  ProfileSession(const workload::FolderWriter& folder, const counter::PassPlan& plan, Options options);
  ~ProfileSession() override;
  ProfileSession(const ProfileSession&) = delete;
  ProfileSession& operator=(const ProfileSession&) = delete;

  /// Writes perfmon/<pass>.txt of every pass, and .yaml if it has definitions, named like its results.
  Status write_inputs(const counter::Filter& filter);
  /// Writes a line in rocprof-compute's form to the log and, under that name and without --quiet, to stderr.
  void header(std::string_view line);

  void run_begins(std::span<const size_t> passes, size_t number, size_t total) override;
  void note(std::string_view line) override;
  void warn(std::string_view sentence) override;
  void target_started() override { folder_.started(); }
  void target_writes() override;
  void target_output(int stream, std::string_view bytes) override;
  void progress(uint64_t done, uint64_t total) override;
  Status pass_done(const counter::PassResult& result) override;

  /// The names of the files written so far: "pmc_perf_0.csv".
  const std::vector<std::string>& files() const { return files_; }
  /// The dispatches of the first pass that the session wrote.
  const std::vector<counter::ObservedDispatch>& dispatches() const { return dispatches_; }
  /// Removes the progress bar from the terminal and completes the log.
  void finish();

 private:
  std::string file_stem(size_t pass) const;
  Status write_database(const counter::PassResult& result) const;
  void log(std::string_view line);
  void show(std::string_view line);
  void clear_bar();
  void draw_bar(double share, std::string_view behind);

  const workload::FolderWriter& folder_;
  const counter::PassPlan& plan_;
  Options options_;
  std::FILE* log_ = nullptr;
  std::mutex lock_;  // target_output() runs in another thread
  std::string partial_[3];
  std::vector<std::string> files_;
  std::vector<counter::ObservedDispatch> dispatches_;
  size_t run_ = 0, runs_ = 1;
  bool bar_ = false, terminal_ = false;
  bool line_taken_ = false;  // the target has begun a line and not ended it
  int drawn_percent_ = -1;
  int64_t began_ = 0, run_began_ = 0;
};

/// The wide csv of one pass: one row for each dispatch.
std::string wide_csv(const counter::PassResult& result);
/// The long csv: one row for each dispatch and counter.
std::string long_csv(const counter::PassResult& result);
/// The file of PC samples that analyze reads, its text, and the text of ps_file_kernel_trace.csv beside it with one
/// "dispatch" per kernel.
inline constexpr std::string_view kPcSamplesFile = "ps_file_pc_sampling_stochastic.csv";
std::string pc_samples_csv(const std::vector<counter::PcSample>& samples);
std::string pc_kernels_csv(const std::vector<counter::PcSample>& samples);
/// timestamps.csv: `existing` plus a row for each dispatch of a run.
std::string timestamps_csv(std::string_view existing, int run,
                           const std::vector<counter::ObservedDispatch>& dispatches);

}  // namespace tacho::cli
