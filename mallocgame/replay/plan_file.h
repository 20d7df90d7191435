// A plan as JSON text, for people and scripts: one line a residence, a copy and an access served
// from fast memory, each with the names of what it is about beside the indices that count. Accesses
// that are not listed are served from main memory.
//
//   {
//     "format": "mallocgame plan",
//     "version": 1,
//     "program": "resnet50_b1", "program_fingerprint": "0123456789abcdef",
//     "hardware": "tpu_v4i",
//     "residences": [
//       {"residence": 0, "buffer": 7, "name": "param_3", "offset": 0, "bytes": 131072, "begin": 4,
//       "end": 9}
//     ],
//     "copies": [
//       {"kind": "prefetch", "residence": 0, "begin": 4, "end": 8, "part_begin": 0, "part_end":
//       131072,
//        "preload": false, "replaces": -1}
//     ],
//     "served": [
//       {"access": 12, "residence": 0, "tick": 8, "instruction": "fusion.2", "name": "param_3"}
//     ]
//   }
#ifndef MALLOCGAME_REPLAY_PLAN_FILE_H_
#define MALLOCGAME_REPLAY_PLAN_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// `plan` must be well formed for `program` (Validate's kMalformed). Equal plans, equal text.
std::string PlanToJson(const Program& program, const Plan& plan);

// Reads what PlanToJson writes, in any layout. Every key is required and no other is allowed; all
// indices and ticks are of this program, and the names are those of the indices. Whether the plan
// keeps the rules is Validate's question. InvalidArgument says where in the text; for a plan of
// another program it names both fingerprints.
absl::StatusOr<Plan> PlanFromJson(const Program& program, absl::string_view json);

}  // namespace mallocgame

#endif  // MALLOCGAME_REPLAY_PLAN_FILE_H_
