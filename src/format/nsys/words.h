// Numbers in nsys' tables: CUPTI's and its own, in both directions.
#pragma once

#include <cstdint>
#include <utility>

#include "event/schema.h"

namespace tacho::format::nsys {

/// NVTX_EVENTS.eventType.
inline constexpr int64_t kNvtxCategory = 33, kNvtxMark = 34, kNvtxThread = 39, kNvtxPushPop = 59, kNvtxStartEnd = 60,
                         kNvtxtPushPop = 70, kNvtxtStartEnd = 71, kNvtxDomain = 75;

template <typename Word>
struct NumberedWord {
  int64_t number;
  Word word;
};
/// The first word of a number, and the first number of a word; the last pair stands for what is not in the list.
inline constexpr NumberedWord<event::CopyDirection> kDirections[] = {
    {1, event::CopyDirection::kHostToDevice},   {2, event::CopyDirection::kDeviceToHost},
    {8, event::CopyDirection::kDeviceToDevice}, {9, event::CopyDirection::kHostToHost},
    {10, event::CopyDirection::kPeerToPeer},    {3, event::CopyDirection::kHostToDevice},
    {4, event::CopyDirection::kDeviceToHost},   {5, event::CopyDirection::kDeviceToDevice},
    {6, event::CopyDirection::kDeviceToDevice}, {7, event::CopyDirection::kDeviceToDevice},
    {0, event::CopyDirection::kUnknown}};
inline constexpr NumberedWord<event::MemoryKind> kMemories[] = {
    {0, event::MemoryKind::kPageable},     {1, event::MemoryKind::kPinned},
    {2, event::MemoryKind::kDevice},       {3, event::MemoryKind::kArray},
    {4, event::MemoryKind::kManaged},      {4, event::MemoryKind::kSvm},
    {5, event::MemoryKind::kDeviceStatic}, {6, event::MemoryKind::kManagedStatic},
    {65535, event::MemoryKind::kUnknown}};
inline constexpr NumberedWord<event::SyncKind> kWaits[] = {
    {1, event::SyncKind::kEvent},   {2, event::SyncKind::kQueueWaitEvent}, {3, event::SyncKind::kQueue},
    {4, event::SyncKind::kContext}, {4, event::SyncKind::kDevice},         {0, event::SyncKind::kUnknown}};

template <typename Word, size_t kCount>
constexpr Word word_of(const NumberedWord<Word> (&list)[kCount], int64_t number) {
  for (const auto& pair : list)
    if (pair.number == number) return pair.word;
  return list[kCount - 1].word;
}
template <typename Word, size_t kCount>
constexpr int64_t number_of_word(const NumberedWord<Word> (&list)[kCount], Word word) {
  for (const auto& pair : list)
    if (pair.word == word) return pair.number;
  return list[kCount - 1].number;
}

/// Packed ids: the process in bits 24 to 47, the thread in the low 24.
constexpr int64_t global_id(int64_t pid, int64_t tid) {
  return (pid & 0xff'ffff) << 24 | (tid & 0xff'ffff);
}
constexpr int64_t pid_of(int64_t id) {
  return id >> 24 & 0xff'ffff;
}
constexpr int64_t tid_of(int64_t id) {
  return id & 0xff'ffff;
}

}  // namespace tacho::format::nsys
