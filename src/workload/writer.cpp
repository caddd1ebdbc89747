// Writing profile folders (writer.h).
#include "workload/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/files/output_file.h"
#include "base/files/temporary.h"
#include "workload/sysinfo.h"
#include "workload/torch_trace.h"

namespace tacho::workload {

namespace fs = std::filesystem;

std::string csv_number(double value) {
  if (std::isnan(value)) return {};
  if (value == std::floor(value) && std::fabs(value) < 9.007199254740992e15) return fmt::format("{:.0f}", value);
  return fmt::format("{}", value);
}

namespace {

// pmc_perf_3.csv -> 3, -1 for anything else.
int pass_number(std::string_view name) {
  for (const std::string_view start : {"pmc_perf_", "results_"}) {
    if (!name.starts_with(start)) continue;
    name.remove_prefix(start.size());
    int number = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const std::string_view rest(end, static_cast<size_t>(name.data() + name.size() - end));
    if (error == std::errc() && (rest == ".csv" || rest == ".csv.gz" || rest == ".db")) return number;
  }
  return -1;
}

// Files of a profile run, which --overwrite removes.
bool is_ours(const fs::path& path) {
  const std::string name = path.filename().string();
  return pass_number(name) >= 0 || name == "pmc_perf.csv" || name == "sysinfo.csv" || name == "timestamps.csv" ||
         name == "profiling_config.yaml" || name == "log.txt" || name == "roofline.csv" ||
         name == "ps_file_results.json" ||
         ((name.starts_with("SQ") || name.starts_with("results_SQ") || name.starts_with("ps_file_")) &&
          name.ends_with(".csv")) ||
         (name.starts_with("results_SQ") && name.ends_with(".db")) ||
         (name.starts_with(kTorchPrefix) && name.ends_with(".csv"));
}

// Files of ours in a folder and its perfmon/, as paths below the folder.
std::vector<fs::path> files_of_runs(const fs::path& folder) {
  std::vector<fs::path> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (is_ours(entry.path())) names.push_back(entry.path().filename());
  for (const auto& entry : fs::directory_iterator(folder / "perfmon", error))
    if (entry.path().extension() == ".txt" || entry.path().extension() == ".yaml")
      names.push_back("perfmon" / entry.path().filename());
  const fs::path consolidated = fs::path(kTorchPrefix) / "consolidated.csv";
  if (fs::exists(folder / consolidated, error)) names.push_back(consolidated);
  return names;
}

}  // namespace

// A lock on the folder itself: it leaves no file, however the process ends, and the target does not inherit it.
class FolderWriter::Lock {
 public:
  explicit Lock(int file) : file_(file) {}
  ~Lock() { close(file_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int file_;
};

// The files that --overwrite removes, in a hidden folder beside the new files until the program runs, and those that
// killed tachos left in the folder.
class FolderWriter::Aside {
 public:
  explicit Aside(fs::path folder) : folder_(std::move(folder)) {}
  ~Aside() {
    if (moved_.empty()) return;
    std::error_code error;
    if (complete_)
      for (const fs::path& name : files_of_runs(folder_)) fs::remove(folder_ / name, error);
    for (const fs::path& name : moved_) fs::rename(hidden_ / name, folder_ / name, error);
    remove_hidden();
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  // Restores files that a killed tacho had set aside for a program that it no longer started. Spools and unfinished
  // traces are of no use.
  void tidy() {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error))
      if (is_left(entry.path().filename().string())) left_.push_back(entry.path());
    for (const fs::path& path : left_) {
      if (!path.filename().string().starts_with(kHidden)) continue;
      for (const fs::path& name : files_of_runs(path)) fs::rename(path / name, folder_ / name, error);
    }
  }

  Status set_aside() {
    const std::vector<fs::path> names = files_of_runs(folder_);
    std::error_code error;
    if (names.empty()) return {};
    // It stays if tacho is killed: the next run puts its contents back.
    TACHO_ASSIGN(TemporaryFolder folder, TemporaryFolder::create((folder_ / kHidden).string()));
    hidden_ = folder.release();
    fs::create_directory(hidden_ / "perfmon", error);
    fs::create_directory(hidden_ / kTorchPrefix, error);
    for (const fs::path& name : names) {
      if (!error) fs::rename(folder_ / name, hidden_ / name, error);
      if (!error) {
        moved_.push_back(name);
        continue;
      }
      if (moved_.empty()) remove_hidden();
      return fail("{}: cannot be replaced: {}", (folder_ / name).string(), error.message());
    }
    complete_ = true;
    return {};
  }

  void discard() {
    moved_.clear();
    std::error_code error;
    if (!hidden_.empty()) {
      // Renamed first: if we are killed on the way, the rest must not come back.
      fs::path gone = hidden_;
      gone.replace_filename(".tacho-gone-" + std::to_string(getpid()));
      fs::rename(hidden_, gone, error);
      left_.push_back(error ? hidden_ : gone);
    }
    for (const fs::path& path : left_) fs::remove_all(path, error);
    left_.clear();
  }

 private:
  static constexpr std::string_view kHidden = ".tacho-old-";

  // Of a profile run: other commands of tacho may be writing here, too.
  static bool is_left(std::string_view name) {
    if (!name.starts_with(".tacho-")) return false;
    return name.starts_with(".tacho-spool-") || name.starts_with(".tacho-run-") || name.starts_with(kHidden) ||
           name.starts_with(".tacho-gone-") || name.find("-run.tacho") != std::string_view::npos ||
           name.find("-pass.tacho") != std::string_view::npos;
  }

  // Empty folders only: a file that could not be put back stays.
  void remove_hidden() const {
    std::error_code error;
    fs::remove(hidden_ / "perfmon", error);
    fs::remove(hidden_ / kTorchPrefix, error);
    fs::remove(hidden_, error);
  }

  fs::path folder_, hidden_;
  std::vector<fs::path> moved_, left_;
  bool complete_ = false;
};

void FolderWriter::started() const {
  if (aside_ != nullptr) aside_->discard();
}

Result<FolderWriter> FolderWriter::open(const std::string& folder, bool overwrite) {
  FolderWriter writer;
  writer.folder_ = folder;
  while (writer.folder_.size() > 1 && writer.folder_.back() == '/') writer.folder_.pop_back();
  std::error_code error;
  if (fs::exists(writer.folder_, error) && !fs::is_directory(writer.folder_, error))
    return fail("{}: is a file; the profile needs a folder", writer.folder_);
  TACHO_TRY(create_folders(writer.folder_ + "/perfmon"));
  if (access(writer.folder_.c_str(), W_OK) != 0) return fail("{}: cannot be written to", writer.folder_);
  // File systems that lock no folders leave it at that.
  if (const int file = ::open(writer.folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); file >= 0) {
    writer.lock_ = std::make_shared<Lock>(file);
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return fail(
          "{}: another run is being written there; wait for it or choose another folder (%rank% and %env{{NAME}}% in "
          "--output-directory tell the processes of a launcher apart)",
          writer.folder_);
  }
  writer.aside_ = std::make_shared<Aside>(writer.folder_);
  writer.aside_->tidy();
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(writer.folder_, error))
    if (is_ours(entry.path())) old.push_back(entry.path());
  if (overwrite) {
    TACHO_TRY(writer.aside_->set_aside());
    return writer;
  }
  TACHO_ASSIGN(writer.earlier_, read_runs(writer.folder_));
  for (const fs::path& path : old) {
    writer.taken_.insert(path.filename().string());
    writer.next_pass_ = std::max(writer.next_pass_, pass_number(path.filename().string()) + 1);
  }
  const bool foreign = writer.earlier_.empty() && std::any_of(old.begin(), old.end(), [](const fs::path& path) {
                         const std::string name = path.filename().string();
                         return pass_number(name) >= 0 || name == "pmc_perf.csv";
                       });
  // A run that was killed before its entry was written is ours all the same.
  const auto info = foreign ? read_sysinfo(writer.folder_) : Result<SysInfo>();
  if (foreign && !(info && info->get("version").starts_with("tacho ")))
    return fail("{}: holds a profile that tacho did not write, to which no run can be added; "
                "choose another folder, or --overwrite to replace it",
                writer.folder_);
  return writer;
}

std::string FolderWriter::stem(std::string_view pass, bool long_form) const {
  constexpr std::string_view kNumbered = "pmc_perf_";
  const std::string_view start = long_form ? "results_" : "";
  if (pass.starts_with(kNumbered)) {
    int number = 0;
    std::from_chars(pass.data() + kNumbered.size(), pass.data() + pass.size(), number);
    return fmt::format("{}{}", long_form ? start : kNumbered, number + next_pass_);
  }
  std::string name = fmt::format("{}{}", start, pass);
  for (int i = 1; taken_.contains(name + ".csv"); ++i) name = fmt::format("{}{}_{}", start, pass, i);
  return name;
}

Status FolderWriter::write(const std::string& name, std::string_view text, bool replace) const {
  TACHO_ASSIGN(OutputFile file, OutputFile::create(folder_ + "/" + name, replace));
  file.write(text);
  return file.commit();
}

Status FolderWriter::add_run(const RunEntry& run) const {
  std::vector<RunEntry> runs = earlier_;
  runs.push_back(run);
  runs.back().number = earlier_.empty() ? 1 : earlier_.back().number + 1;
  return write("profiling_config.yaml", config_text(runs), true);
}

}  // namespace tacho::workload
