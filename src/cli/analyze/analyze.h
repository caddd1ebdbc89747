// `tacho analyze`, also for its personalities.
#pragma once

#include "cli/analyze/face.h"

namespace tacho::cli {

/// argv[0] is the name shown in help and messages ("tacho analyze", "rocprof-compute analyze").
int analyze(int argc, char** argv, AnalyzeFace face);

}  // namespace tacho::cli
