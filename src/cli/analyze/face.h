// Whose command line and texts an analysis imitates.
#pragma once

namespace tacho::cli {

enum class AnalyzeFace { kTacho, kRocprofCompute };

}  // namespace tacho::cli
