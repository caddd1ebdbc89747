// Which OpenCL implementations the target sees: vendor folders for the ICD loader with one of them.
#pragma once

#include <string>

#include "base/result.h"

namespace tacho::counter {

/// Path or name of PoCL's library as the vendor files of this machine give it; "" when it is not installed.
std::string find_pocl();
/// Oclgrind's ICD (liboclgrind-rt-icd.so); "" when it is not installed. $TACHO_OCLGRIND names another one.
std::string find_oclgrind();
/// Writes `folder`/`name`.icd with `library`; the value for OCL_ICD_VENDORS.
Result<std::string> vendor_folder(const std::string& folder, const std::string& name,
                                  const std::string& library);

}  // namespace tacho::counter
