// `tacho analyze`, also for its personalities.
#pragma once

namespace tacho::cli {

/// How the command presents itself.
enum class AnalyzeFace { kTacho, kRocprofCompute };

/// argv[0] is the name shown in help and messages ("tacho analyze", "rocprof-compute analyze").
int analyze(int argc, char** argv, AnalyzeFace face);

}  // namespace tacho::cli
