// The data of a self-contained page (packed.h).
#include "view/page/packed.h"

#include <fmt/format.h>

#include "trace/store/hash.h"

namespace tacho::view {

namespace {

constexpr size_t kLongColumn = 4096;  // bytes

}  // namespace

Packed::Packed(std::function<void(std::string_view)> put) : put_(std::move(put)), room_(size_t{1} << 16) {}

Packed::~Packed() {
  if (begun_) deflateEnd(&stream_);
}

Status Packed::begin() {
  constexpr int kGzip = 15 + 16;
  if (deflateInit2(&stream_, 9, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    return fail("the page's data cannot be compressed: there is too little memory");
  begun_ = true;
  feed(std::string_view("TEMB\2\0\0\0", 8), Z_NO_FLUSH);
  return {};
}

Packed::Place Packed::put_column() {
  // Lines with the same content, such as a host with one process, share it.
  const auto hash = trace::hash_128(column_);
  const auto [known, fresh] = known_.try_emplace(fmt::format("{:x} {:x} {}", hash.high, hash.low, column_.size()),
                                                 Place{offset_, column_.size()});
  if (fresh) {
    offset_ += column_.size();
    // A long column gets its own Huffman code.
    const bool alone = column_.size() >= kLongColumn;
    if (alone) feed({}, Z_BLOCK);
    feed(column_, alone ? Z_BLOCK : Z_NO_FLUSH);
  }
  return known->second;
}

void Packed::pass_on() {
  json_bytes_ += json.size();
  feed(json, Z_NO_FLUSH);
  json.clear();
}

Status Packed::finish() {
  pass_on();
  const auto bytes = static_cast<uint32_t>(json_bytes_);
  feed(std::string_view(reinterpret_cast<const char*>(&bytes), sizeof bytes), Z_NO_FLUSH);
  if (feed({}, Z_FINISH) != Z_STREAM_END) return fail("the page's data cannot be compressed");
  if (!left_.empty()) encode(left_);
  return {};
}

int Packed::feed(std::string_view piece, int flush) {
  if (piece.empty() && flush == Z_NO_FLUSH) return Z_OK;
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
  stream_.avail_in = static_cast<uInt>(piece.size());
  int done = Z_OK;
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(room_.data());
    stream_.avail_out = static_cast<uInt>(room_.size());
    done = deflate(&stream_, flush);
    left_.append(room_.data(), room_.size() - stream_.avail_out);
    const size_t whole = left_.size() / 3 * 3;
    encode(std::string_view(left_).substr(0, whole));
    left_.erase(0, whole);
  } while (stream_.avail_out == 0 && done == Z_OK);
  return done;
}

void Packed::encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k)
      three = three << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) text += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63];
  }
  put_(text);
}

void put_columns(JsonWriter& json, const Columns& columns) {
  json.begin_object();
  for (const auto& [name, place] : columns)
    if (place.bytes > 0) json.key(name).begin_array().value(place.offset).value(place.bytes).end_array();
  json.end_object();
}

}  // namespace tacho::view
