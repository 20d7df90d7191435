// Memory spaces by number, and in the shapes of a module whose scheduled instructions have them
// already. Private to the folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mallocgame::hlo {

// The memory space of the flags by which copies tell that they are done.
inline constexpr int64_t kFlagSpace = 2;
// Those of small arrays and of scalars beside the core.
inline constexpr int64_t kSmallArraySpace = 4;
inline constexpr int64_t kScalarSpace = 6;

class HloModuleProto;
class ShapeProto;

// The arrays of a shape, depth-first: those of Module::arrays.
std::vector<ShapeProto*> ArraysOf(ShapeProto& shape);
std::vector<const ShapeProto*> ArraysOf(const ShapeProto& shape);
// The place of array `k` of them in the whole shape, outermost first.
std::vector<int64_t> IndexOfArray(const ShapeProto& whole, int64_t k);

// The bytes of an array's shape, but for its memory space: those of another array that are equal
// say that the two are alike, wherever they lie.
std::string ArrayWithoutSpace(const ShapeProto& shape);

// Marks what follows from the shapes of operands and results: parameters and roots of fused
// computations, what hands them on inside by tuples and nested fusions (not by bitcasts, as XLA
// does it), what a dynamic-update-slice makes inside to be updated, and the program shapes of all
// computations but the entry.
void SpreadMemorySpaces(HloModuleProto& module);

}  // namespace mallocgame::hlo
