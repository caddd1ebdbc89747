// Creates the spool's folder and reads its records (spool.h).
#include "counter/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text/demangle.h"
#include "event/spool/spool_layout.h"

namespace tacho::counter {

namespace fs = std::filesystem;

Result<SpoolFolder> SpoolFolder::create(const std::string& parent, const Filter& filter,
                                        const std::vector<std::pair<std::string, std::string>>& settings) {
  SpoolFolder spool;
  TACHO_ASSIGN(spool.folder_, ScratchFolder::create(parent, "spool", "state"));
  const std::string& folder = spool.folder();
  std::ofstream config(folder + "/config");
  config << filter.lines();
  for (const auto& [key, value] : settings) config << key << "=" << value << "\n";
  config.close();
  if (!config) return fail("{}/config: cannot be written", folder);
  const int file = spool.folder_.lock();
  // Allocate the disk blocks now: the target writes through the mapping, and a full disk would raise SIGBUS in it.
  int reason = EINTR;
  while (reason == EINTR) reason = posix_fallocate(file, 0, 4096);
  if (reason != 0) return fail("{}/state: {}", folder, strerror(reason));
  void* const map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) return fail("{}/state: cannot be mapped: {}", folder, strerror(errno));
  spool.state_ = static_cast<spool::SpoolState*>(map);
  spool.state_->layout = spool::kSpoolLayout;
  return spool;
}

SpoolFolder::SpoolFolder(SpoolFolder&& other) noexcept
    : folder_(std::move(other.folder_)), state_(std::exchange(other.state_, nullptr)) {}

SpoolFolder::~SpoolFolder() {
  if (state_ != nullptr) munmap(state_, 4096);
}

bool parse_records(std::string_view bytes, std::vector<SpooledDispatch>& out) {
  while (!bytes.empty()) {
    spool::SpoolRecord head;
    if (bytes.size() < sizeof head) return false;
    memcpy(&head, bytes.data(), sizeof head);
    const uint64_t name_space = (uint64_t{head.name_bytes} + 7) / 8 * 8;
    if (head.magic != spool::kSpoolMagic || head.bytes > bytes.size() ||
        sizeof head + name_space + uint64_t{head.values} * sizeof(double) != head.bytes)
      return false;
    SpooledDispatch& record = out.emplace_back();
    ObservedDispatch& dispatch = record.dispatch;
    dispatch.index = head.index;
    dispatch.pid = head.pid;
    dispatch.tid = head.tid;
    dispatch.queue = static_cast<int64_t>(head.queue);
    dispatch.kernel = demangle(bytes.substr(sizeof head, head.name_bytes));
    for (size_t i = 0; i < 3; ++i) {
      dispatch.grid[i] = head.grid[i];
      dispatch.workgroup[i] = head.workgroup[i];
    }
    dispatch.lds = head.lds;
    dispatch.start = head.start;
    dispatch.end = head.end;
    record.groups = head.groups;
    record.groups_run = head.groups_run;
    record.pass = head.pass;
    record.selected = head.selected != 0;
    record.values.resize(head.values);
    memcpy(record.values.data(), bytes.data() + sizeof head + name_space, head.values * sizeof(double));
    bytes.remove_prefix(head.bytes);
  }
  return true;
}

Result<std::vector<SpooledDispatch>> SpoolFolder::read(size_t& cut) const {
  std::vector<SpooledDispatch> records;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder(), error)) {
    if (entry.path().extension() != ".records") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) return fail("{}: cannot be read", entry.path().string());
    if (!parse_records(text.view(), records)) ++cut;
  }
  if (error) return fail("{}: cannot be read: {}", folder(), error.message());
  std::sort(records.begin(), records.end(),
            [](const SpooledDispatch& a, const SpooledDispatch& b) { return a.dispatch.index < b.dispatch.index; });
  return records;
}

}  // namespace tacho::counter
