#include "base/version.h"

#include "base/version_commit.h"  // generated: TACHO_PROGRAM_COMMIT

namespace tacho {

std::string_view program_commit() {
  return TACHO_PROGRAM_COMMIT;
}

std::string program_version_text() {
  std::string text(kProgramVersion);
  if (!program_commit().empty()) text.append(" (commit ").append(program_commit()).append(")");
  return text;
}

}  // namespace tacho
