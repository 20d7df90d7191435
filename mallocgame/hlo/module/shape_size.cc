// Computes sizes of shapes. Only the first tile pads; deeper tiles are assumed to divide it (XLA
// reference 6.4).
#include "mallocgame/hlo/module/shape_size.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

// The number of elements or bits of an array, which may grow to 8 times its limit in bytes: no
// element takes less than a bit.
class Count {
 public:
  explicit Count(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // a * b, or InvalidArgument if that is too much. Both are non-negative.
  absl::StatusOr<int64_t> Times(int64_t a, int64_t b) const {
    const int64_t most = limit_bytes_ > INT64_MAX / 8 ? INT64_MAX : limit_bytes_ * 8;
    int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product) || product > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("an array of more than ", limit_bytes_, " bytes"));
    }
    return product;
  }

  absl::StatusOr<int64_t> RoundUp(int64_t n, int64_t multiple) const {
    return Times(n / multiple + (n % multiple != 0 ? 1 : 0), multiple);
  }

 private:
  int64_t limit_bytes_;
};

int64_t Extent(const ShapeProto& shape, int64_t dimension) {
  return shape.dimensions(static_cast<int>(dimension));
}

absl::Status CheckArray(const ShapeProto& shape) {
  for (const int64_t dimension : shape.dimensions()) {
    if (dimension == INT64_MIN) {
      return absl::InvalidArgumentError(
          "an unbounded dimension, ? in text; its size must be known");
    }
    if (dimension < 0)
      return absl::InvalidArgumentError(absl::StrCat("a dimension of ", dimension));
  }
  const LayoutProto& layout = shape.layout();
  if (layout.element_size_in_bits() < 0 || layout.element_size_in_bits() > 1024) {
    return absl::InvalidArgumentError(absl::StrCat("an element of ", layout.element_size_in_bits(),
                                                   " bits; allowed are 0 to 1024"));
  }
  if (layout.tiles().empty() && layout.minor_to_major().empty()) return absl::OkStatus();
  if (layout.minor_to_major_size() != shape.dimensions_size()) {
    return absl::InvalidArgumentError(absl::StrCat("a layout that orders ",
                                                   layout.minor_to_major_size(), " of ",
                                                   shape.dimensions_size(), " dimensions"));
  }
  uint64_t seen = 0;
  if (shape.dimensions_size() > 64) return absl::InvalidArgumentError("more than 64 dimensions");
  for (const int64_t dimension : layout.minor_to_major()) {
    if (dimension < 0 || dimension >= shape.dimensions_size() || (seen >> dimension & 1) != 0) {
      return absl::InvalidArgumentError(absl::StrCat("a layout that orders dimension ", dimension,
                                                     " of ", shape.dimensions_size(),
                                                     ", once each is allowed"));
    }
    seen |= uint64_t{1} << dimension;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Bytes(int64_t elements, int64_t bits, Count count) {
  MG_ASSIGN_OR_RETURN(const int64_t total, count.Times(elements, bits));
  return total / 8 + (total % 8 != 0 ? 1 : 0);
}

// True for types whose values take no bytes.
bool HasNoBytes(const ShapeProto& shape) {
  return shape.element_type() == TOKEN || shape.element_type() == OPAQUE_TYPE;
}

// Bits of one element as it is stored without a layout that says otherwise; 0 for tuples, tokens
// and opaque values.
int64_t BitsOfType(PrimitiveType type) {
  switch (type) {
    case S16:
    case U16:
    case F16:
    case BF16: return 16;
    case S32:
    case U32:
    case F32: return 32;
    case S64:
    case U64:
    case F64:
    case C64: return 64;
    case C128: return 128;
    case TUPLE:
    case TOKEN:
    case OPAQUE_TYPE:
    case PRIMITIVE_TYPE_INVALID:
    case BUFFER: return 0;
    default: return PrimitiveType_IsValid(type) ? 8 : 0;
  }
}

absl::StatusOr<int64_t> BitsOf(const ShapeProto& shape) {
  const int64_t bits = BitsOfType(shape.element_type());
  if (bits == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("element type ", shape.element_type(), ", which is no array's"));
  }
  return bits;
}

}  // namespace

const ShapeProto& ArrayOf(const ShapeProto& shape) {
  const bool wrapped = shape.element_type() == BUFFER && shape.tuple_shapes_size() == 1;
  if (wrapped) return shape.tuple_shapes(0);
  return shape;  // NOLINT(bugprone-return-const-ref-from-parameter): shapes are parts of modules
}

int64_t ElementBits(const ShapeProto& shape) { return BitsOfType(shape.element_type()); }

absl::StatusOr<int64_t> TiledBytes(const ShapeProto& shape, int64_t limit) {
  if (HasNoBytes(shape)) return 0;
  MG_RETURN_IF_ERROR(CheckArray(shape));
  MG_ASSIGN_OR_RETURN(const int64_t natural_bits, BitsOf(shape));
  const LayoutProto& layout = shape.layout();
  const int64_t bits =
      layout.element_size_in_bits() > 0 ? layout.element_size_in_bits() : natural_bits;

  const int rank = shape.dimensions_size();
  const int tiled = layout.tiles().empty() ? 0 : layout.tiles(0).dimensions_size();
  if (std::find(shape.dimensions().begin(), shape.dimensions().end(), 0) !=
      shape.dimensions().end())
    return 0;
  const Count count(limit);
  int64_t elements = 1;
  for (int i = 0; i < std::max(rank, tiled); ++i) {
    const bool ordered = !layout.minor_to_major().empty();
    int64_t extent =
        i >= rank ? 1 : Extent(shape, ordered ? layout.minor_to_major(i) : rank - 1 - i);
    if (i < tiled) {
      const int64_t tile = layout.tiles(0).dimensions(tiled - 1 - i);
      // A negative size marks a dimension that is combined with the next; it is not padded itself.
      if (tile == 0) return absl::InvalidArgumentError("a tile of size 0");
      if (tile > 0) {
        MG_ASSIGN_OR_RETURN(extent, count.RoundUp(extent, tile));
      }
    }
    MG_ASSIGN_OR_RETURN(elements, count.Times(elements, extent));
  }
  const int64_t tail = layout.tail_padding_alignment_in_elements();
  if (tail < 0)
    return absl::InvalidArgumentError(absl::StrCat("tail padding to ", tail, " elements"));
  if (tail > 1) {
    MG_ASSIGN_OR_RETURN(elements, count.RoundUp(elements, tail));
  }
  return Bytes(elements, bits, count);
}

int64_t TileExtent(const ShapeProto& shape, int64_t dimension) {
  const LayoutProto& layout = shape.layout();
  const int tiled = layout.tiles().empty() ? 0 : layout.tiles(0).dimensions_size();
  for (int i = 0; i < std::min(tiled, layout.minor_to_major_size()); ++i) {
    if (layout.minor_to_major(i) == dimension)
      return std::max<int64_t>(1, layout.tiles(0).dimensions(tiled - 1 - i));
  }
  return 1;
}

int64_t PaddedExtent(const ShapeProto& shape, int64_t dimension) {
  const int64_t extent = Extent(shape, dimension), tile = TileExtent(shape, dimension);
  return (extent / tile + (extent % tile != 0 ? 1 : 0)) * tile;
}

int64_t OuterUnitBytes(const ShapeProto& shape, int64_t bytes) {
  const LayoutProto& layout = shape.layout();
  const int rank = std::min(shape.dimensions_size(), layout.minor_to_major_size());
  const int tiled = layout.tiles().empty() ? 0 : layout.tiles(0).dimensions_size();
  // A matrix with one row of tiles is cut along the row.
  for (int i = rank - 1; i >= std::max(0, rank == 2 ? 0 : rank - 1); --i) {
    const int64_t tile =
        i < tiled ? std::max<int64_t>(1, layout.tiles(0).dimensions(tiled - 1 - i)) : 1;
    const int64_t extent = Extent(shape, layout.minor_to_major(i));
    const int64_t units = extent / tile + (extent % tile != 0 ? 1 : 0);
    if (units > 1 && bytes % units == 0) return bytes / units;
  }
  return bytes;
}

absl::StatusOr<int64_t> UnpaddedBytes(const ShapeProto& whole, int64_t limit) {
  const ShapeProto& shape = ArrayOf(whole);
  if (shape.element_type() == TUPLE) {
    int64_t sum = 0;
    for (const ShapeProto& element : shape.tuple_shapes()) {
      MG_ASSIGN_OR_RETURN(const int64_t bytes, UnpaddedBytes(element, limit));
      sum += bytes;
    }
    return sum;
  }
  if (HasNoBytes(shape)) return 0;
  MG_RETURN_IF_ERROR(CheckArray(shape));
  MG_ASSIGN_OR_RETURN(const int64_t bits, BitsOf(shape));
  int64_t elements = 1;
  if (std::find(shape.dimensions().begin(), shape.dimensions().end(), 0) !=
      shape.dimensions().end())
    return 0;
  const Count count(limit);
  for (const int64_t dimension : shape.dimensions()) {
    MG_ASSIGN_OR_RETURN(elements, count.Times(elements, dimension));
  }
  return Bytes(elements, bits, count);
}

}  // namespace mallocgame::hlo
