// rocprof-sys's executables: -run, -sample and -avail are tacho sys with rocprof-sys's file names; the others name
// tacho's substitute.

#include "cli/command.h"
#include "cli/sys/sys.h"
#include "report/output.h"

namespace tacho::cli {
namespace {

int start(sys::Verb verb, int argc, char** argv) {
  auto request = sys::parse(sys::Face::kRocprofSys, verb, argc, argv);
  if (!request) return complain(kOwnError, request.error().message);
  if (request->help) {
    report::print("{}", sys::help_text(request->face, request->verb));
    return kOk;
  }
  return sys::run(*request);
}

}  // namespace

int personality_rocprof_sys_run(int argc, char** argv) {
  return start(sys::Verb::kRun, argc, argv);
}
int personality_rocprof_sys_sample(int argc, char** argv) {
  return start(sys::Verb::kSample, argc, argv);
}
int personality_rocprof_sys_avail(int argc, char** argv) {
  return sys::avail(sys::Face::kRocprofSys, argc, argv);
}

int personality_rocprof_sys_instrument(int, char**) {
  return complain(kOwnError,
                  "rocprof-sys-instrument rewrites programs, which tacho does not do; sample them instead: "
                  "rocprof-sys-sample -- ./app (tacho sys sample), or mark regions with include/tacho/tacho.h");
}
int personality_rocprof_sys_causal(int, char**) {
  return complain(kOwnError,
                  "rocprof-sys-causal slows threads down to estimate speed-ups, which tacho does not do; tacho sys "
                  "sample shows where time goes, tacho flame -b compares two runs");
}
int personality_rocprof_sys_python(int, char**) {
  return complain(kOwnError,
                  "rocprof-sys-python traces every Python call, which tacho does not do; tacho sys sample -- python3 "
                  "script.py samples Python lines without changing the program, python/tacho has markers");
}

}  // namespace tacho::cli
