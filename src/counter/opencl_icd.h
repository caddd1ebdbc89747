// Chooses the OpenCL implementation that the target sees: writes a vendor folder with one entry for the ICD loader.
#pragma once

#include <string>

#include "base/result.h"

namespace tacho::counter {

/// PoCL's library, path or name as this machine's vendor files give it; "" when it is not installed.
std::string find_pocl();
/// Oclgrind's ICD (liboclgrind-rt-icd.so); "" when it is not installed. $TACHO_OCLGRIND overrides it.
std::string find_oclgrind();
/// Writes `folder`/`name`.icd, which names `library`. Returns the value for OCL_ICD_VENDORS.
Result<std::string> vendor_folder(const std::string& folder, const std::string& name, const std::string& library);

}  // namespace tacho::counter
