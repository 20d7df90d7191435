// A plan as JSON text, for people and scripts. Each residence, each copy, and each access that is
// served from fast memory has one line. Indices say what a line is about; the names beside them are
// for people. Accesses that are not listed are served from main memory.
//
//   {
//     "format": "mallocgame plan",
//     "version": 1,
//     "program": "resnet50_b1", "program_fingerprint": "0123456789abcdef",
//     "hardware": "tpu_v4i",
//     "residences": [
//       {"residence": 0, "buffer": 7, "name": "param_3", "offset": 0, "bytes": 131072,
//        "begin": 4, "end": 9}
//     ],
//     "copies": [
//       {"kind": "prefetch", "residence": 0, "begin": 4, "end": 8, "part_begin": 0,
//        "part_end": 131072, "preload": false, "replaces": -1}
//     ],
//     "served": [
//       {"access": 12, "residence": 0, "tick": 8, "instruction": "fusion.2", "name": "param_3"}
//     ]
//   }
//
// A plan of a program with its instructions in another order has two keys more, before
// "residences": the fingerprint of the program in its own order, and for each tick of the new order
// its tick there (schedule/instruction_order.h). "program_fingerprint" is of the reordered program,
// and so are all indices.
//
//     "ordered_from": "fedcba9876543210", "order": [0, 2, 1],
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// `plan` must be well formed for `program` (not kMalformed to Validate). Equal plans give equal
// text.
std::string PlanToJson(const Program& program, const Plan& plan);

// Reads what PlanToJson writes, in any layout. Every key is required, and no other is allowed. All
// indices and ticks must be of this program, and the names must fit the indices. Validate says
// whether the plan keeps the rules. InvalidArgument says where in the text something is wrong; for
// a plan of another program it has both fingerprints.
// `program` is the one that the plan is of: of a plan with an order the reordered one.
absl::StatusOr<Plan> PlanFromJson(const Program& program, absl::string_view json);

// A plan, and the program that it is of.
struct OrderedPlan {
  std::shared_ptr<const Program> program;
  std::vector<Tick> order;  // of `program` from the one that it was read for; empty: it is that one
  Plan plan;
};

// The plan of `reordered`, which has the instructions of `program` in `order`.
std::string OrderedPlanToJson(const Program& program, const std::vector<Tick>& order,
                              const Program& reordered, const Plan& plan);
// Reads what either of both writes, for a program in its own order. InvalidArgument as above, and
// for an order that CheckInstructionOrder refuses.
absl::StatusOr<OrderedPlan> OrderedPlanFromJson(const std::shared_ptr<const Program>& program,
                                                absl::string_view json);

}  // namespace mallocgame
