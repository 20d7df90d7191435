#include "mallocgame/hlo/write/write_order.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/proto_forms.h"
#include "mallocgame/hlo/write/reorder_module.h"

namespace mallocgame::hlo {

absl::StatusOr<bool> WriteOrder(const Program& program, HloModuleProto& module) {
  absl::flat_hash_map<absl::string_view, std::pair<int64_t, int64_t>> ids;  // computation, own
  for (const HloComputationProto& computation : module.computations()) {
    for (const HloInstructionProto& instruction : computation.instructions())
      ids[instruction.name()] = {computation.id(), instruction.id()};
  }
  std::map<int64_t, std::vector<int64_t>> orders;
  for (const Instruction& instruction : program.instructions()) {
    if (instruction.kind == InstructionKind::kLoopEntry) continue;
    const auto found = ids.find(instruction.name);
    if (found == ids.end()) {
      return Refused(
          {.rule = "other-program", .instructions = {instruction.name}},
          absl::InvalidArgumentError(absl::StrCat(
              "program '", program.name(),
              "' was not made of this module, which has no instruction '", instruction.name, "'")));
    }
    orders[found->second.first].push_back(found->second.second);
  }
  auto& sequences = *module.mutable_schedule()->mutable_sequences();
  for (const auto& [computation, order] : orders) {
    const auto own = sequences.find(computation);
    std::vector<int64_t> before, now = order;
    if (own != sequences.end()) {
      before.assign(own->second.instruction_ids().begin(), own->second.instruction_ids().end());
    }
    std::sort(before.begin(), before.end());
    std::sort(now.begin(), now.end());
    if (before == now) continue;
    return Refused({.rule = "other-program"},
                   absl::InvalidArgumentError(
                       absl::StrCat("program '", program.name(),
                                    "' was not made of this module: the schedule of "
                                    "computation ",
                                    computation, " has ", before.size(),
                                    " instructions, the program ", now.size(), ", or others")));
  }
  bool changed = false;
  for (const auto& [computation, order] : orders) {
    auto& own = *sequences.at(computation).mutable_instruction_ids();
    if (std::equal(own.begin(), own.end(), order.begin(), order.end())) continue;
    own.Assign(order.begin(), order.end());
    changed = true;
  }
  return changed;
}

}  // namespace mallocgame::hlo

namespace mallocgame {

absl::StatusOr<std::string> ReorderModule(const Program& program, absl::string_view module) {
  google::protobuf::Arena arena;
  absl::StatusOr<hlo::HloProto*> proto = hlo::ParseAnyForm(module, arena);
  if (!proto.ok()) {
    return Prefixed("module", proto.status());
  }
  MG_RETURN_IF_ERROR(hlo::WriteOrder(program, *(*proto)->mutable_hlo_module()).status());
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream output(&stream);
  output.SetSerializationDeterministic(true);  // There is a map in it.
  (*proto)->SerializeToCodedStream(&output);
  output.Trim();
  return bytes;
}

}  // namespace mallocgame
