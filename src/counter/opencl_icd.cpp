// Finds OpenCL implementations (opencl_icd.h).
#include "counter/opencl_icd.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tacho::counter {

namespace fs = std::filesystem;

std::string find_pocl() {
  std::string folders;
  for (const char* name : {"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
      folders = value;
      break;
    }
  for (const std::string& folder : {folders, std::string("/etc/OpenCL/vendors")}) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().extension() != ".icd" || entry.path().filename().string().find("pocl") == std::string::npos)
        continue;
      std::ifstream file(entry.path());
      std::string library;
      if (std::getline(file, library) && !library.empty()) return library;
    }
  }
  return {};
}

std::string find_oclgrind() {
  if (const char* path = std::getenv("TACHO_OCLGRIND"); path != nullptr && *path != '\0')
    return access(path, R_OK) == 0 ? path : std::string();
  for (const char* path : {"/usr/lib/oclgrind/liboclgrind-rt-icd.so", "/usr/local/lib/oclgrind/liboclgrind-rt-icd.so",
                           "/usr/lib64/oclgrind/liboclgrind-rt-icd.so"})
    if (access(path, R_OK) == 0) return path;
  return {};
}

Result<std::string> vendor_folder(const std::string& folder, const std::string& name, const std::string& library) {
  std::error_code error;
  const std::string place = folder + "/" + name;
  fs::create_directories(place, error);
  std::ofstream file(place + "/" + name + ".icd");
  file << library << "\n";
  file.close();
  if (error || !file) return fail("{}/{}.icd: cannot be written", place, name);
  return place + "/";
}

}  // namespace tacho::counter
