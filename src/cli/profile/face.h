// Whose command line and messages a profile run imitates.
#pragma once

namespace tacho::cli {

enum class ProfileFace { kTacho, kRocprofCompute };

}  // namespace tacho::cli
