// Writing of output files.
#include "report/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tacho::report {

Status check_writable(const std::string& path, bool overwrite) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  if (S_ISDIR(info.st_mode)) return fail("{}: is a folder; give a file name", path);
  if (!overwrite) return fail("{}: exists already; choose another name or give --overwrite", path);
  return {};
}

Status write_file(const std::string& path, std::string_view text, bool overwrite) {
  TACHO_TRY(check_writable(path, overwrite));
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkstemp(temporary.data());
  if (fd < 0) return fail("{}: cannot be written: {}", path, std::strerror(errno));
  const auto give_up = [&](int error) {
    ::close(fd);
    ::unlink(temporary.c_str());
    return fail("{}: cannot be written: {}", path, std::strerror(error));
  };
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return give_up(errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd, 0666 & ~mask) != 0 || ::fsync(fd) != 0) return give_up(errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up(errno);
  ::close(fd);
  return {};
}

Result<std::string> embed_json(std::string_view page, std::string_view json) {
  const std::size_t at = page.find(kJsonPlace);
  if (at == std::string_view::npos) return fail("the page has no place for the data ({})", kJsonPlace);
  std::string out(page.substr(0, at));
  out.reserve(page.size() + json.size() + json.size() / 16);
  for (std::size_t i = 0; i < json.size(); ++i) {
    // "</script>" and "<!--" inside a string would end or change the element.
    if (json[i] == '<') out += "\\u003c";
    else out += json[i];
  }
  out += page.substr(at + kJsonPlace.size());
  return out;
}

}  // namespace tacho::report
