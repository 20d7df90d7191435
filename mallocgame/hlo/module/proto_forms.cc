// Reads the bytes as one form after the other. Nothing in them names their message, and bytes of
// one are often bytes of another too; but only the right one finds computations with instructions.
#include "mallocgame/hlo/module/proto_forms.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

constexpr size_t kMostBytes = std::numeric_limits<int>::max();

bool HasInstructions(const HloProto& proto) {
  for (const HloComputationProto& computation : proto.hlo_module().computations()) {
    if (!computation.instructions().empty()) return true;
  }
  return false;
}

// Writes out the configs that instructions have by reference.
absl::Status WriteOutBackendConfigs(HloModuleProto& module) {
  for (HloComputationProto& computation : *module.mutable_computations()) {
    for (HloInstructionProto& instruction : *computation.mutable_instructions()) {
      if (!instruction.has_backend_config_reference()) continue;
      const int64_t index = instruction.backend_config_reference().index();
      if (index < 0 || index >= module.backend_configs_size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("instruction '", instruction.name(), "' has backend_config ", index,
                         " of the module's, which has ", module.backend_configs_size()));
      }
      instruction.set_backend_config(module.backend_configs(static_cast<int>(index)));
      instruction.clear_backend_config_reference();
    }
  }
  module.clear_backend_configs();
  return absl::OkStatus();
}

absl::StatusOr<HloProto*> FindForm(absl::string_view bytes, google::protobuf::Arena& arena) {
  if (bytes.empty() || bytes.size() > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", bytes.size(), " bytes, allowed: 1 to ", kMostBytes));
  }
  if (absl::StartsWith(bytes, "HloModule")) {
    return absl::InvalidArgumentError(
        "found HLO text; protos are read here, text by mallocgame.import_hlo and `mallocgame "
        "import`");
  }
  const auto create = [&arena] { return google::protobuf::Arena::CreateMessage<HloProto>(&arena); };
  // The config of an HloModuleProtoWithConfig is a field that HloProto has not.
  HloProto* const whole = create();
  const bool is_whole = ParseMessage(bytes, *whole);
  if (is_whole && HasInstructions(*whole)) return whole;
  HloProto* const module = create();
  if (ParseMessage(bytes, *module->mutable_hlo_module()) && HasInstructions(*module)) return module;
  HloSnapshot* const snapshot = google::protobuf::Arena::CreateMessage<HloSnapshot>(&arena);
  if (ParseMessage(bytes, *snapshot) && HasInstructions(snapshot->hlo()))
    return snapshot->mutable_hlo();
  if (is_whole) return absl::InvalidArgumentError("hlo_module: no computations with instructions");
  return absl::InvalidArgumentError(
      "not a serialized HloProto or HloModuleProto (damaged, cut short, or compressed)");
}

}  // namespace

bool ParseMessage(absl::string_view bytes, google::protobuf::MessageLite& message) {
  return bytes.size() <= kMostBytes &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

absl::StatusOr<HloProto*> ParseAnyForm(absl::string_view bytes, google::protobuf::Arena& arena) {
  MG_ASSIGN_OR_RETURN(HloProto* const proto, FindForm(bytes, arena));
  MG_RETURN_IF_ERROR(WriteOutBackendConfigs(*proto->mutable_hlo_module()));
  return proto;
}

}  // namespace mallocgame::hlo
