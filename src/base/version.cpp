#include "base/version.h"

#include "base/version_commit.h"  // generated: TACHO_PROGRAM_COMMIT, TACHO_PROGRAM_RELEASE

namespace tacho {

std::string_view program_commit() {
  return TACHO_PROGRAM_COMMIT;
}

std::string_view program_release() {
  return TACHO_PROGRAM_RELEASE;
}

std::string program_version_text() {
  std::string text(kProgramVersion);
  if (program_commit().empty()) return text;
  text.append(" (");
  if (!program_release().empty()) text.append(program_release()).append(", ");
  return text.append("commit ").append(program_commit()).append(")");
}

}  // namespace tacho
