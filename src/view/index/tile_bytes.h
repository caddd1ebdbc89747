// Tiles as bytes for the page: little-endian, one block a line, every column padded to 8 bytes. docs/commands/view.md
// does not describe them: server and page come from one build.
//
//   header, 32 bytes: u32 'TTIL' | u32 track | u8 kind | u8 level | u16 lanes | u32 count | u32 bytes | u32 flags | 0
//   kind 0 nothing, 1 density: u16 lane[] u16 bin[] u16 cover[] u32 events[] u32 name[]
//   kind 2 slices: f64 start[] f64 duration[] (-1 = still open) u64 row[] u32 name[] u16 lane[] u16 flags[]
//   kind 3 counter: f64 value before the tile | u16 bin[] f64 min[] f64 max[] f64 last[]
//   flags: 1 = the index does not cover all of it so far
#pragma once

#include <string>

#include "view/index/index.h"

namespace tacho::view {

void append_tile(std::string& out, size_t line, unsigned level, const Tile& tile);

}  // namespace tacho::view
