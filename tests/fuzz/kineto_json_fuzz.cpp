// Chrome and Kineto JSON: any bytes give a trace or a sentence; and wherever the text so far ends, the reader of events
// asks for more or decides, but never reads on.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "format/json/tokens.h"
#include "format/kineto/event.h"
#include "format/kineto/kineto.h"
#include "fuzz/checking_writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace tacho::format::json;
using namespace tacho::format::kineto;

constexpr const char* kSeeds[] = {
    R"json({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X", "totalGlobalMem": 206141652992}], "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 100.125, "dur": 50.5, "args": {"External id": 7, "Sequence number": 3}},
{"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 1, "tid": 2, "ts": 110, "dur": 5, "args": {"External id": 7, "cbid": 211, "correlation": 9}},
{"ph": "X", "cat": "kernel", "name": "Cijk \"x\" é", "pid": 0, "tid": 5, "ts": 120.001, "dur": 20.999, "args": {"device": 0, "stream": 5, "correlation": 9, "grid": [16, 1, 1], "block": [64, 1, 1]}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Host -> Device)", "pid": 0, "tid": 5, "ts": 150, "dur": 2, "args": {"bytes": 4096, "memory bandwidth (GB/s)": 2.0}},
{"ph": "i", "s": "g", "name": "mark", "pid": 1, "tid": 2, "ts": 160},
{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
{"ph": "s", "id": 9, "pid": 1, "tid": 2, "ts": 110, "cat": "ac2g", "name": "ac2g"},
{"ph": "C", "name": "GPU 0 Utilization", "pid": 0, "ts": 170, "args": {"util": 0.5}}],
"traceName": "x.json"})json",
    R"json([{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},{"ph":"E","pid":1,"tid":1,"ts":3},{"ph":"b","cat":"c","id":"0x1f","name":"n","pid":"p","tid":"t","ts":"5"},{"ph":"e","cat":"c","id":"0x1f","name":"n","pid":"p","tid":"t","ts":9},{"ph":"X","name":"gpu","pid":2,"tid":0,"ts":1e3,"dur":-4}])json",
    R"json({"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},{"ph":"M","pid":1,"tid":20,"name":"thread_name","args":{"name":"Stream #20(Compute)"}},{"ph":"X","pid":1,"tid":20,"ts":29.125,"dur":40.25,"name":"k","args":{"correlation_id":"0","kernel_details":"regs:32 static_shared:0 dynamic_shared:0 grid:8,1,1 block:128,1,1 occ_pct:50.0"}},{"ph":"X","pid":2,"tid":21,"ts":40,"dur":2,"name":"MemcpyD2H","args":{"memcpy_details":"kind_src:device kind_dst:pageable size:4096 dest:0 async:1"}},{"ph":"M","pid":2,"name":"process_labels","args":{"labels":"GPU 1"}}]}{"traceEvents":{"traceEvents":[{"ph":"X","name":1,"pid":"[TP01] 0","tid":1,"ts":1}]}} , {)json",
    R"json([{"ph":"X","cat":"cpu_op","name":"a","pid":83,"tid":83,"ts":1000,"dur":200,"args":{"External id":1,"Rank":1,"Input Dims":[[1,2],[]],"Concrete Inputs":["","1"]}},{"ph":"X","cat":"xpu_runtime,x","name":"urEnqueue","pid":83,"tid":83,"ts":1020,"dur":10,"args":{"correlation":1}},{"ph":"X","cat":"kernel","name":"g","pid":0,"tid":7,"ts":0,"dur":0,"args":{"device":0,"stream":7,"correlation":1}},{"ph":"X","cat":"kernel","name":"g","pid":0,"tid":7,"ts":1100,"dur":3,"args":{"device":0,"External id":1,"fromDevice":0,"toDevice":1}},{"ph":"M","name":"process_name","pid":83,"args":{"name":"python"}},{"ph":"X","cat":"cpu_op","name":"C:\Users\d","pid":83,"tid":83,"ts":900,"dur":2,"args":{"External id":1}},{"ph":"X","cat":"Memcpy","name":"Memcpy PtoP","pid":0,"tid":7,"ts":905,"dur":2,"args":{"fromDevice":0,"toDevice":1}},{"ph":"C","name":"m","id":"0","pid":"GPU 0 Counters","ts":1,"args":{"":true,"b":null,"c":NaN}},{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":83,"tid":1,"ts":1,"args":{"Bytes":-100,"Device Type":1,"Device Id":3,"Addr":5}},{"ph":"S","cat":"o","id2":{"global":5},"scope":"s","name":"c","pid":1,"ts":2},{"ph":"F","cat":"o","id2":{"global":5},"scope":"s","name":"c","pid":2,"ts":3},{},[1],null)json",
    "\x1f\x8b\x08",
};

void read_events(const uint8_t* data, size_t size) {
  // Ends exactly where a fence follows: reading on is seen by the sanitizer.
  std::string text(reinterpret_cast<const char*>(data), size);
  text.append(64, '\0');
  text.shrink_to_fit();
  Event event;
  JsonTokens json(text.data(), text.data() + size);
  for (int events = 0; events < 1000 && !json.at_end(); ++events) {
    const char* const before = json.at();
    const JsonOutcome outcome = parse_event(json, event);
    if (outcome == JsonOutcome::kBad && (json.what() == nullptr || *json.what() == 0)) abort();
    if (outcome != JsonOutcome::kOk) break;
    if (json.at() <= before || json.at() > json.end()) abort();
    if (json.peek() == ',') json.step();
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (size < 4) {
    const char* const text = kSeeds[seed % std::size(kSeeds)];
    size = std::min(strlen(text), max_size);
    memcpy(data, text, size);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tacho::fuzz::MemoryFile file;
  read_events(data, size);
  tacho::fuzz::CheckingWriter writer;
  tacho::fuzz::expect_sentence(read_into(file.write(data, size), writer));
  return 0;
}
