// Bytes that an array takes on a TPU: its dimensions rounded up to the first tile of its layout.
#ifndef MALLOCGAME_HLO_SHAPE_SIZE_H_
#define MALLOCGAME_HLO_SHAPE_SIZE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "mallocgame/hlo/hlo.pb.h"

namespace mallocgame::hlo {

// Bits of one element as it is stored without a layout that says otherwise; 0 for tuples, tokens
// and opaque values.
int64_t ElementBits(PrimitiveType type);

// Of an array shape (not a tuple): tiled and padded. Tokens and opaque values take 0 bytes.
// InvalidArgument for negative dimensions, a layout that is none, an unknown element type, or more
// than `limit` bytes.
absl::StatusOr<int64_t> TiledBytes(const ShapeProto& shape, int64_t limit);

// Product of dimensions and element bytes, without padding; of a tuple the sum. The same errors.
absl::StatusOr<int64_t> UnpaddedBytes(const ShapeProto& shape, int64_t limit);

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_SHAPE_SIZE_H_
