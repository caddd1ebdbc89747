// tacho.h's functions: the table that the header finds, and the same as symbols for dlsym and other languages.
#define TACHO_LIBRARY_INTERFACE 1
#include <cstring>

#include "capture/attached.h"
#include "capture/source/marker/marker.h"
#include "capture/source/opencl/opencl.h"
#include "tacho/tacho.h"
#include "tape/writer.h"

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using tacho::capture::marker::Marker;
namespace opencl = tacho::capture::opencl;
namespace marker = tacho::capture::marker;

uint32_t intern_or_none(const char* text) {
  return text == nullptr || *text == '\0' ? 0 : tacho::tape::intern(marker::clip(text));
}

Marker make(const char* text, const tacho_attributes* given) {
  Marker made{.text = marker::clip(text)};
  if (given == nullptr) return made;
  tacho_attributes attributes{};  // fields that the caller's version does not know stay 0
  memcpy(&attributes, given, given->size < sizeof attributes ? given->size : sizeof attributes);
  made.domain = intern_or_none(attributes.domain);
  made.category = intern_or_none(attributes.category);
  made.has_color = attributes.has_color != 0;
  made.color = attributes.color;
  if (attributes.payload_kind == TACHO_PAYLOAD_INTEGER) made.payload_flag = tacho::event::kMarkerInteger;
  if (attributes.payload_kind == TACHO_PAYLOAD_DOUBLE) made.payload_flag = tacho::event::kMarkerDouble;
  memcpy(&made.payload, &attributes.payload, sizeof made.payload);
  return made;
}

int api_active() {
  return marker::active() ? 1 : 0;
}
void api_mark(const char* text, const tacho_attributes* attributes) {
  if (marker::ready()) marker::mark(make(text, attributes));
}
void api_push(const char* text, const tacho_attributes* attributes) {
  if (marker::ready()) marker::push(make(text, attributes));
}
void api_pop(const char* domain) {
  if (marker::ready()) marker::pop(intern_or_none(domain));
}
uint64_t api_start(const char* text, const tacho_attributes* attributes) {
  if (!marker::ready()) return 0;
  const uint64_t range = marker::start(make(text, attributes));
  return (range & marker::kUnrecorded) == 0 ? range : 0;
}
void api_name_thread(const char* name) {
  if (marker::ready()) marker::name_thread(0, marker::clip(name));
}

constexpr tacho_functions kFunctions = {
    .size = sizeof(tacho_functions),
    .reserved = 0,
    .active = api_active,
    .mark = api_mark,
    .range_push = api_push,
    .range_pop = api_pop,
    .range_start = api_start,
    .range_stop = marker::stop,
    .pause = marker::pause,
    .resume = marker::resume,
    .flush = marker::flush,
    .name_thread = api_name_thread,
};

}  // namespace

/// nullptr when this process is not traced and does not listen, or for a version of the header that this library does
/// not know.
TACHO_EXPORT const tacho_functions* tacho_get_functions(uint32_t version) {
  return version == TACHO_VERSION && (tacho::capture::listens() || marker::ready()) ? &kFunctions : nullptr;
}
TACHO_EXPORT int tacho_active(void) {
  return api_active();
}
TACHO_EXPORT void tacho_mark(const char* text) {
  api_mark(text, nullptr);
}
TACHO_EXPORT void tacho_mark_with(const char* text, const tacho_attributes* attributes) {
  api_mark(text, attributes);
}
TACHO_EXPORT void tacho_range_push(const char* text) {
  api_push(text, nullptr);
}
TACHO_EXPORT void tacho_range_push_with(const char* text, const tacho_attributes* attributes) {
  api_push(text, attributes);
}
TACHO_EXPORT void tacho_range_pop(void) {
  api_pop(nullptr);
}
TACHO_EXPORT void tacho_range_pop_from(const char* domain) {
  api_pop(domain);
}
TACHO_EXPORT uint64_t tacho_range_start(const char* text) {
  return api_start(text, nullptr);
}
TACHO_EXPORT uint64_t tacho_range_start_with(const char* text, const tacho_attributes* attributes) {
  return api_start(text, attributes);
}
TACHO_EXPORT void tacho_range_stop(uint64_t range) {
  marker::stop(range);
}
TACHO_EXPORT void tacho_keep(const char* why) {
  if (marker::ready()) marker::keep(marker::clip(why));
}
TACHO_EXPORT void tacho_pause(void) {
  marker::pause();
}
TACHO_EXPORT void tacho_resume(void) {
  marker::resume();
}
TACHO_EXPORT void tacho_flush(void) {
  opencl::flush();
  marker::flush();
}
TACHO_EXPORT void tacho_name_thread(const char* name) {
  api_name_thread(name);
}
