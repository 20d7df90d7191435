// How many bytes an array takes on a TPU: its dimensions are rounded up to the first tile of its
// layout. Private to the folder.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace mallocgame::hlo {

class ShapeProto;

// The array whose storage a buffer type, b(f32[8]) in text, stands for; other shapes themselves.
const ShapeProto& ArrayOf(const ShapeProto& shape);

// The bits of one element as it is stored without a layout that says otherwise; 0 for tuples,
// tokens and opaque values.
int64_t ElementBits(const ShapeProto& shape);

// The size of an array (not a tuple), tiled and padded. Tokens and opaque values take 0 bytes. An
// array that is split between the fast memories of two cores (`SC(0:256)` in the layout) has the
// bytes of both parts.
// InvalidArgument for negative dimensions, an invalid layout, an unknown element type, or more than
// `limit` bytes.
absl::StatusOr<int64_t> TiledBytes(const ShapeProto& shape, int64_t limit);

// The extent of a dimension in the first tile of the layout; 1 if it isn't tiled. The shape must be
// one that TiledBytes() takes.
int64_t TileExtent(const ShapeProto& shape, int64_t dimension);

// How far a dimension reaches with its padding. The shape must be one that TiledBytes() takes.
int64_t PaddedExtent(const ShapeProto& shape, int64_t dimension);

// The bytes of one row of tiles of the outermost dimension of an array that takes `bytes`; all of
// them if there is only one. The shape must be one that TiledBytes() takes.
int64_t OuterUnitBytes(const ShapeProto& shape, int64_t bytes);

// The product of dimensions and element bytes, without padding; for a tuple the sum over its
// elements, of which each may take `limit` bytes. It has the same errors.
absl::StatusOr<int64_t> UnpaddedBytes(const ShapeProto& whole, int64_t limit);

}  // namespace mallocgame::hlo
