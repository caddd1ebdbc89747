// Several traces as one, with their clocks related: for `tacho merge` and `tacho view FOLDER`.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ranks/read/align.h"
#include "trace/write/writer.h"

namespace tacho::cli {

/// Opened traces.
class TraceFiles {
 public:
  /// `once`: each recording is kept once, as of what lies in a folder, and `notes` gets a sentence for each trace that
  /// is left out as others hold the same recordings. Errors: a trace that cannot be read.
  static Result<TraceFiles> open(const std::vector<std::string>& files, bool once, std::vector<std::string>& notes);

  size_t size() const { return kept_.size(); }
  const std::string& name(size_t at) const { return names_[kept_[at]]; }
  const std::shared_ptr<const trace::Trace>& trace(size_t at) const { return traces_[kept_[at]]; }

  /// The traces of each job (ranks::jobs_of()).
  std::vector<std::vector<size_t>> jobs() const;

  /// Copies the traces `which` into `writer`, each as a run of its own. Moments of those that share collectives are
  /// brought onto the first one's clock. `notes` gets sentences about clocks and about what is left out.
  Status merge(std::span<const size_t> which, trace::TraceWriter& writer, std::vector<std::string>& notes) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<const trace::Trace>> traces_;
  std::unique_ptr<ranks::TraceSurvey> survey_ = std::make_unique<ranks::TraceSurvey>();
  std::vector<size_t> kept_;
};

}  // namespace tacho::cli
