// How much an instruction reads, writes and computes, by the rules of XLA's HloCostAnalysis (XLA
// reference 2.1). Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

inline constexpr int64_t kMaxAccessedBytes = int64_t{1} << 48;  // sums of bytes stop here
inline constexpr int64_t kMaxWork = int64_t{1} << 60;           // sums of operations stop here

struct Operations {
  int64_t flops = 0;
  int64_t transcendentals = 0;
};

struct Work {
  std::vector<int64_t> read;     // bytes, by operand
  std::vector<int64_t> written;  // bytes, by output array
  Operations operations;
};

// Departs from XLA where XLA's answer would be useless here:
// - XLA knows nothing of custom calls. Here they move their arrays whole, and kernels do what their
//   authors estimated.
// - Arrays have their size on the chip, with padding. Those in a tuple that is an operand count.
// - An instruction reads all indices that it has as operands of their own.
// - Inside fusions, bitcasts are looked through, a gather or scatter counts as it does outside, and
//   constants are part of the code. XLA counts nothing that a custom fusion at the root of another
//   reads.
// - The workspaces of calls of other back ends' libraries (library_calls.h) count nothing.
// arithmetic.h has more of operations. docs/numbers.md compares them.
class CostAnalysis {
 public:
  explicit CostAnalysis(const Module& module);

  // Zero for while, conditional and call: what they run is on the time axis itself.
  Work Of(int32_t instruction) const;

  // The bytes that an instruction without a price is taken to move, there and back: what it writes
  // (only the update if it updates in place). If a scatter's updates are more than its result, it
  // is what the result holds, or half of that and of what it reads whole, if that is more.
  int64_t MovedBytes(int32_t instruction) const;

  // What a computation reads and writes, and does, if it runs once as the program would run it, or
  // beside it.
  int64_t BytesOfRun(int32_t computation) const;
  Operations OperationsOfRun(int32_t computation) const { return bodies_[computation].operations; }

 private:
  // One run of a computation, as the body of a fusion or applied by another instruction.
  struct Body {
    std::vector<int64_t> read;      // by parameter
    std::vector<bool> reads_whole;  // by parameter: whether something reads all of it
    std::vector<int64_t> written;   // by array of the root; empty: all are written in full
    int64_t moved = 0;              // as MovedBytes counts, if a fusion has this body
    Operations operations;
  };
  Body Describe(const Computation& computation) const;
  bool IsBitcast(int32_t transpose) const;
  void AddReads(const Computation& computation, Body& body) const;
  bool ReadsWhole(int32_t instruction, size_t operand) const;
  int64_t Read(int32_t instruction, size_t operand) const;
  int64_t GatheredBytes(int32_t gather) const;
  int64_t ScatteredBytes(int32_t scatter, size_t operand, int32_t updates) const;
  int64_t BytesOfSlices(const ShapeProto& slice, int32_t array,
                        absl::Span<const int64_t> window) const;
  std::vector<int64_t> Written(int32_t instruction) const;
  std::vector<int64_t> WrittenByRoot(int32_t root) const;
  int64_t Moved(int32_t instruction) const;
  Operations OperationsOf(int32_t instruction) const;
  // the first called computation; null if there is none
  const Body* Called(int32_t instruction) const;
  int32_t ThroughBitcasts(int32_t instruction) const { return source_[instruction]; }
  int64_t Bytes(int32_t instruction) const { return bytes_[instruction]; }

  const Module& module_;
  std::vector<int64_t> bytes_;   // by instruction: all its arrays together
  std::vector<int32_t> source_;  // by instruction: itself, or what bitcasts made it of
  std::vector<Body> bodies_;     // by computation
};

}  // namespace mallocgame::hlo
