// Keeps or removes hidden recordings (hidden_recording.h).
#include "cli/files/hidden_recording.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/format.h"
#include "cli/command.h"
#include "cli/shared/command_line.h"

namespace tacho::cli {
HiddenRecording::HiddenRecording(const std::string& visible) : visible_(visible) {
  const std::filesystem::path path(visible);
  path_ = (path.parent_path() / fmt::format(".{}.{}.tacho", path.stem().string().substr(0, 200), getpid())).string();
  removed_ = RemovedOnSignal(path_);
}

std::string HiddenRecording::keep() {
  for (;;) {
    const std::string name = free_name(std::filesystem::path(visible_).replace_extension(".tacho").string());
    if (link(path_.c_str(), name.c_str()) == 0) return name;
    if (errno == EEXIST) continue;
    // A file system without links: uses the name that was free a moment ago.
    removed_.release();
    return rename(path_.c_str(), name.c_str()) == 0 ? name : path_;
  }
}

int complain_of_recording(const launch::RunResult& outcome, const std::string& path,
                          std::optional<HiddenRecording>& hidden) {
  std::string sentence = outcome.written.error().message;
  if (hidden)  // the user did not ask for that file
    if (const size_t at = sentence.find(path); at != std::string::npos)
      sentence.replace(at, path.size(), hidden->visible());
  if (access(path.c_str(), F_OK) == 0)
    sentence += fmt::format("; what was saved before that is in {}", hidden ? hidden->keep() : path);
  if (outcome.exit_code != 0) sentence += fmt::format(" (the program itself ended with code {})", outcome.exit_code);
  return complain(kOwnError, sentence);
}

}  // namespace tacho::cli
