// Helpers that checks share (check.h).
#include "vendor/check.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace tacho::vendor {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "debian", "fedora", "suse", "arch", "" by ID and ID_LIKE.
std::string family() {
  std::ifstream file("/etc/os-release");
  std::string ids;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("ID=") || line.starts_with("ID_LIKE=")) ids += " " + line;
  for (const auto& [word, name] :
       {std::pair("debian", "debian"), std::pair("ubuntu", "debian"), std::pair("fedora", "fedora"),
        std::pair("rhel", "fedora"), std::pair("suse", "suse"), std::pair("arch", "arch")})
    if (ids.find(word) != std::string::npos) return name;
  return {};
}

}  // namespace

std::string sudo() {
  return geteuid() == 0 ? std::string() : "sudo ";
}

std::string install_command(const std::string& debian, const std::string& fedora) {
  const std::string system = family(), other = fedora.empty() ? debian : fedora;
  if (system == "debian") return sudo() + "apt-get install " + debian;
  if (system == "fedora") return sudo() + "dnf install " + other;
  if (system == "suse") return sudo() + "zypper install " + other;
  if (system == "arch") return sudo() + "pacman -S " + other;
  return "install the package " + debian + " (its name on Debian)";
}

std::string container() {
  std::error_code ignored;
  if (const char* const kind = std::getenv("container"); kind != nullptr && *kind != '\0') return kind;
  if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) return "kubernetes";
  if (std::filesystem::exists("/.dockerenv", ignored)) return "docker";
  if (std::filesystem::exists("/run/.containerenv", ignored)) return "podman";
  if (std::filesystem::exists("/.singularity.d", ignored)) return "apptainer";
  const std::string groups = first_line("/proc/1/cgroup");
  for (const std::string_view word : {"docker", "kubepods", "containerd", "lxc"})
    if (groups.find(word) != std::string::npos) return std::string(word);
  return {};
}

bool pci_device_of(uint32_t vendor) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/pci/devices", ignored)) {
    const std::string id = first_line(entry.path() / "vendor"), kind = first_line(entry.path() / "class");
    // 0x03....: displays; 0x12....: processing accelerators
    if (!id.empty() && std::strtoul(id.c_str(), nullptr, 16) == vendor &&
        (kind.starts_with("0x03") || kind.starts_with("0x12")))
      return true;
  }
  return false;
}

}  // namespace tacho::vendor
