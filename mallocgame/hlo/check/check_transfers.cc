// Order of execution, as far as Module does not see to it already.
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/check/phase_reading.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {
namespace {

absl::Status CheckControl(const PhaseReading& written) {
  const Module& module = *written.module;
  std::vector<int32_t> place(module.instructions().size(), kNone);
  for (const Computation& computation : module.computations()) {
    for (size_t k = 0; k < computation.schedule.size(); ++k)
      place[computation.schedule[k]] = static_cast<int32_t>(k);
  }
  for (int32_t i = 0; i < std::ssize(module.instructions()); ++i) {
    for (const int64_t id : written.proto(i).control_predecessor_ids()) {
      const std::optional<int32_t> before = module.FindById(id);
      if (before && module.instruction(*before).computation == module.instruction(i).computation &&
          place[*before] < place[i])
        continue;
      return Refuse(PhaseRule::kSchedule, {module.NameOf(i)}, module.Where(i),
                    ": its control predecessor ",
                    before ? absl::StrCat("'", written.proto(*before).name(), "'")
                           : absl::StrCat("of id ", id),
                    " does not come before it in its computation");
    }
  }
  return absl::OkStatus();
}

// The one instruction that ends a transfer, or hands it on: only that may have what it fills.
absl::Status CheckOneDone(const PhaseReading& written, int32_t start) {
  const std::vector<int32_t>& users = written.users[start];
  const bool copies = written.opcode(start) == kCopyStart;
  if (users.size() == 1) {
    const Opcode ends = written.opcode(users[0]);
    const bool fits =
        copies ? ends == kCopyDone : IsDone(ends) || ends == kAsyncUpdate || ends == kTuple;
    if (fits) return absl::OkStatus();
  }
  std::string found;
  std::vector<std::string> names{written.module->NameOf(start)};
  for (const int32_t user : users) {
    absl::StrAppend(&found, found.empty() ? "'" : "', '", written.proto(user).name());
    names.push_back(written.proto(user).name());
  }
  return Refuse(PhaseRule::kTransfer, names, written.module->Where(start), " is used by ",
                users.empty() ? "nothing" : absl::StrCat(found, "'"), "; it needs one ",
                absl::StripSuffix(written.proto(start).opcode(), "start"),
                "done, which alone may use it");
}

}  // namespace

absl::Status CheckTransfers(const PhaseReading& written) {
  MG_RETURN_IF_ERROR(CheckControl(written));
  for (int32_t i = 0; i < std::ssize(written.module->instructions()); ++i) {
    if (!written.flow.Runs(i)) continue;
    const Opcode opcode = written.opcode(i);
    if (IsStart(opcode)) MG_RETURN_IF_ERROR(CheckOneDone(written, i));
    if (opcode == kCopyDone && written.opcode(written.module->operands(i)[0]) != kCopyStart) {
      return Refuse(
          PhaseRule::kTransfer,
          {written.module->NameOf(i), written.module->NameOf(written.module->operands(i)[0])},
          written.module->Where(i), " ends no copy-start, but '",
          written.proto(written.module->operands(i)[0]).name(), "'");
    }
  }
  return absl::OkStatus();
}

}  // namespace mallocgame::hlo
