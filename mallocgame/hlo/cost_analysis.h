// How much an instruction reads, writes and computes, by the rules of XLA's HloCostAnalysis (XLA
// reference 2.1). Private to the folder.
#ifndef MALLOCGAME_HLO_COST_ANALYSIS_H_
#define MALLOCGAME_HLO_COST_ANALYSIS_H_

#include <cstdint>
#include <vector>

#include "mallocgame/hlo/module.h"

namespace mallocgame::hlo {

inline constexpr int64_t kMaxAccessedBytes = int64_t{1} << 48;  // where sums of bytes stop growing
inline constexpr int64_t kMaxWork = int64_t{1} << 60;           // where flops do

struct Work {
  std::vector<int64_t> read;     // bytes, one an operand
  std::vector<int64_t> written;  // bytes, one an output array
  int64_t flops = 0;
  int64_t transcendentals = 0;
};

// Departs from XLA where its answer would be useless here: a custom call, of which XLA knows
// nothing, moves its arrays whole; inside fusions bitcasts are looked through, and a gather or
// scatter counts as it does outside.
class CostAnalysis {
 public:
  explicit CostAnalysis(const Module& module);

  // Zero for while, conditional and call: what they run is on the time axis itself.
  Work Of(int32_t instruction) const;

  // Bytes that an instruction without a price is taken to move: what it writes, of an update in
  // place only the update, and never more than its arrays hold.
  int64_t MovedBytes(int32_t instruction) const;

 private:
  // Of a computation as the body of a fusion, or applied once.
  struct Body {
    std::vector<int64_t> read;     // by parameter
    std::vector<int64_t> written;  // by array of the root; empty: all in full
    int64_t flops = 0;
    int64_t transcendentals = 0;
  };
  Body Describe(const Computation& computation) const;
  std::vector<int64_t> Reads(const Computation& body) const;
  int64_t Read(int32_t instruction, size_t operand) const;
  std::vector<int64_t> Written(int32_t instruction) const;
  std::vector<int64_t> WrittenByRoot(int32_t root) const;
  void AddArithmetic(int32_t instruction, int64_t& flops, int64_t& transcendentals) const;
  // the first called computation; null if there is none
  const Body* Called(int32_t instruction) const;
  int32_t ThroughBitcasts(int32_t instruction) const { return source_[instruction]; }
  int64_t Bytes(int32_t instruction) const { return bytes_[instruction]; }

  const Module& module_;
  std::vector<int64_t> bytes_;   // by instruction: of all its arrays
  std::vector<int32_t> source_;  // by instruction: itself, or what bitcasts made it of
  std::vector<Body> bodies_;     // by computation
};

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_COST_ANALYSIS_H_
