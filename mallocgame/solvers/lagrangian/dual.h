// The Lagrangian dual of a program: a lower bound on the latency of every valid plan, whatever the
// multipliers are. They are prices of what instructions and buffers share. At given prices each
// instruction takes its cheapest placement and each buffer its cheapest way, by themselves.
// bindings/python/mallocgame/bounds/proof.md has the proof.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/program/cost_model.h"
#include "mallocgame/solvers/bounds.h"
#include "mallocgame/solvers/lagrangian/cheapest.h"
#include "mallocgame/solvers/lagrangian/levels.h"
#include "mallocgame/solvers/lagrangian/paths.h"

namespace mallocgame::lagrangian {

// What a multiplier is the price of, and its unit; then the unit of an integer one.
enum class Relaxed : uint8_t {
  // An access in fast memory, which the instruction pays and the buffer earns: ps; 2^-10 ps.
  kServed,
  // The same of an access of a plain copy that is replaced.
  kReplaced,
  // All of fast memory over one tick: ps; of a byte, 2^-30 ps.
  kSpace,
  // The channel's time in a bucket, as a share of the price of a stall: 1; 2^-30.
  kChannel,
  // In the same unit, what a prefetch pays on top, as its bytes are needed while the instruction in
  // front of the bucket runs.
  kArrival,
  // One preload: ps; 2^-10 ps.
  kPreload,
};

struct Multiplier {
  Relaxed relaxed = Relaxed::kServed;
  int32_t index = 0;       // access, tick or position
  bool is_signed = false;  // it may be negative
  double scale_ps = 0;     // kServed, kReplaced: about what they come to
};

class Dual {
 public:
  // Buffers of less than `least_bytes` lie anywhere at no cost. The cost model must outlive it.
  Dual(const CostModel& cost_model, const PlacementPrices& prices, int64_t least_bytes);

  const std::vector<Multiplier>& multipliers() const { return multipliers_; }

  // Moves multipliers to where the dual allows them.
  void Project(absl::Span<double> at) const;
  // Sets the multipliers of a forest of accesses to their best, given all others. Returns the value
  // there in picoseconds, and a supergradient. The multipliers must be allowed.
  double Ascend(absl::Span<double> at, absl::Span<double> gradient);

  // Integer multipliers near those given.
  std::vector<int64_t> Rounded(absl::Span<const double> at) const;
  // The value at integer multipliers, in integers and without rounding but downwards: no valid plan
  // has a lower latency. InvalidArgument: they aren't allowed.
  absl::StatusOr<int64_t> Exact(absl::Span<const int64_t> at) const;

  // What a byte of fast memory over a tick costs, and a picosecond of the channel behind it.
  void TickPrices(absl::Span<const double> at, std::vector<double>& space,
                  std::vector<double>& channel) const;

 private:
  struct Row {        // a placement of an instruction
    int64_t time_ps;  // all trips
    int64_t idle_ps;  // one of them
    uint32_t fast;    // bits of `accesses`
    bool replaced;
  };
  struct Rows {  // of an instruction
    int32_t first = 0, last = 0;
    std::vector<int32_t> accesses;  // the decided ones
    std::vector<int32_t> replaced;  // those that a replaced plain copy decides
  };
  struct Node {  // of the forest
    bool is_buffer;
    int32_t index;        // into paths_.buffers, or the tick
    int32_t access = -1;  // that its parent shares with it; -1: it is a root
  };
  // The cheapest rows of an instruction that serve an access from main memory, from fast memory,
  // and by replacing the instruction; the first is the cheapest of all if there is no access.
  template <class T>
  struct Cheap {
    T cost[3];
    int32_t row[3];
  };

  int32_t Add(const Multiplier& multiplier);
  void AddInstruction(Tick tick, const PlacementPrices& prices, size_t& row,
                      std::vector<uint8_t>& serves, const std::vector<bool>& is_written,
                      int64_t least_bytes);
  void MakeForest();
  int64_t Room(Tick tick) const;
  std::vector<double> ByByte(absl::Span<const double> at) const;  // as PricesAt takes them
  double ByteTime(double price_of_ps) const;
  Int128 ByteTime(Int128 price_of_ps) const;
  double StallTime(double price) const { return price; }
  Int128 StallTime(Int128 price) const;
  absl::Status CheckStalls(const std::vector<Int128>& at) const;
  // What the paths pay, in units of the value. `at` is in those too, that of space by byte.
  template <class T>
  PathPrices<T> PricesAt(const std::vector<T>& at) const;
  template <class T>
  Cheap<T> CheapestRows(Tick tick, int32_t access, const PathPrices<T>& prices) const;
  void UseRow(Tick tick, int32_t i, Usage& usage) const;
  // Sets the multipliers that a node shares with its parent so that all is the same to it.
  void Settle(const Node& node, const double (&cost)[3], absl::Span<double> at,
              PathPrices<double>& prices) const;
  // What is left of the value when nodes have paid, and the supergradient.
  double Limits(absl::Span<const double> at, const Usage& usage, absl::Span<double> gradient) const;

  const Program& program_;
  const Hardware& hardware_;
  Levels levels_;
  Paths paths_;
  std::vector<Multiplier> multipliers_;
  // Of what they are the price; -1: there is none.
  std::vector<int32_t> served_, replaced_;  // by access
  std::vector<int32_t> space_;              // by tick
  std::vector<int32_t> channel_, arrival_;  // by position
  int32_t preload_ = -1;
  std::vector<Row> rows_;
  std::vector<Rows> rows_of_;                                          // by tick
  std::vector<Node> nodes_;                                            // parents first
  std::vector<bool> in_forest_;                                        // by access
  std::vector<std::array<Way<double>, 3>> ways_;                       // by buffer
  mutable std::tuple<std::vector<double>, std::vector<Int128>> sums_;  // of CheapestRows
};

}  // namespace mallocgame::lagrangian
