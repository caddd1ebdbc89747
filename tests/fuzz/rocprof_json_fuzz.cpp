// The JSON of rocprof v1: any bytes give a trace or a sentence.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <string>

#include "format/rocprof_v1/rocprof_v1.h"
#include "fuzz/checking_writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

constexpr const char* kSeed =
    R"json({ "traceEvents":[{}
,{"args":{"name":"CPU HIP API"},"ph":"M","pid":2,"name":"process_name","sort_index":1}
,{"ph":"X","name":"hipLaunchKernel","pid":2,"tid":11,"ts":"100","dur":"20",
  "args":{"BeginNs":"100000","EndNs":"120000","pid":"9","tid":"11","Name":"hipLaunchKernel","args":"( stream(0))"}}
,{"ph":"X","name":"add","pid":6,"tid":0,"ts":"150","dur":"5",
  "args":{"BeginNs":"150000","EndNs":"155000","dev-id":"0","queue-id":"1","stream-id":"0","Name":"add [clone .kd]","grd":"64"}}
,{"ph":"X","name":"CopyHostToDevice","pid":1,"tid":0,"ts":"160","args":{"BeginNs":"160000","EndNs":"155000"}}
,{"ph":"X","name":"FillBuffer","pid":1,"tid":0,"args":{"BeginNs":"-1","EndNs":"99999999999999999999"}}
,{"ph":"X","name":"range","pid":0,"tid":3,"args":{"BeginNs":"1","EndNs":"2","tid":[1,{"x":null}]}}
,{"ts":110,"ph":"s","cat":"DataFlow","id":1,"pid":2,"tid":11,"name":"dep"}
,{"ts":150,"ph":"t","cat":"DataFlow","id":1,"pid":6,"tid":0,"name":"dep"}
],
"otherData": {"host": "here"}
})json";

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned) {
  if (size < 4) {
    size = std::min(strlen(kSeed), max_size);
    memcpy(data, kSeed, size);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tacho::fuzz::MemoryFile file;
  using namespace tacho::format::rocprof_v1;
  const std::string& path = file.write(data, size);
  (void)accepts(path, {reinterpret_cast<const char*>(data), std::min<size_t>(size, 4096)}, false);
  tacho::fuzz::CheckingWriter writer;
  tacho::fuzz::expect_sentence(read_into(path, writer));
  return 0;
}
