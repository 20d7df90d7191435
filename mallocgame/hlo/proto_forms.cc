// Reads the bytes as one form after the other. Nothing in them names their message, and bytes of
// one are often bytes of another too; but only the right one finds computations with instructions.
#include "mallocgame/hlo/proto_forms.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "mallocgame/hlo/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

template <class Message>
bool Parse(absl::string_view bytes, Message& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

bool HasInstructions(const HloProto& proto) {
  for (const HloComputationProto& computation : proto.hlo_module().computations()) {
    if (!computation.instructions().empty()) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<HloProto*> ParseAnyForm(absl::string_view bytes, google::protobuf::Arena& arena) {
  if (bytes.empty()) return absl::InvalidArgumentError("found 0 bytes");
  if (absl::StartsWith(bytes, "HloModule")) {
    return absl::InvalidArgumentError(
        "found HLO text; protos are read here, text by mallocgame.import_hlo and `mallocgame "
        "import`");
  }
  const auto create = [&arena] { return google::protobuf::Arena::CreateMessage<HloProto>(&arena); };
  // The config of an HloModuleProtoWithConfig is a field that HloProto has not.
  HloProto* const whole = create();
  const bool is_whole = Parse(bytes, *whole);
  if (is_whole && HasInstructions(*whole)) return whole;
  HloProto* const module = create();
  if (Parse(bytes, *module->mutable_hlo_module()) && HasInstructions(*module)) return module;
  HloSnapshot* const snapshot = google::protobuf::Arena::CreateMessage<HloSnapshot>(&arena);
  if (Parse(bytes, *snapshot) && HasInstructions(snapshot->hlo())) return snapshot->mutable_hlo();
  if (is_whole) return absl::InvalidArgumentError("hlo_module: no computations with instructions");
  return absl::InvalidArgumentError(
      "not a serialized HloProto or HloModuleProto (damaged, cut short, or compressed)");
}

}  // namespace mallocgame::hlo
