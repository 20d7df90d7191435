// What a caller sees of a program, and how it is compiled.
#include <string>

#include "google/protobuf/unknown_field_set.h"
#include "mallocgame/hlo/check/phase_reading.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

// Of HloModuleConfigProto: which computations memory space assignment has seen. It is there only if
// that has run.
constexpr int kAssignmentField = 23;

// Programs for other cores, compiled in the first phase.
constexpr int kOtherCoresField = 25;

struct Signature {
  std::string entry, module, config;
};

// The message in a field of a HloModuleProtoWithConfig; empty if it has none.
std::string MessageIn(const google::protobuf::UnknownFieldSet& whole, int number) {
  for (int k = 0; k < whole.field_count(); ++k) {
    const google::protobuf::UnknownField& field = whole.field(k);
    if (field.number() == number &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      return field.length_delimited();
  }
  return {};
}

bool Read(const std::string& bytes, Signature& signature) {
  google::protobuf::UnknownFieldSet whole, config;
  HloModuleProto module;
  if (!whole.ParseFromString(bytes) || !module.ParseFromString(MessageIn(whole, 1)) ||
      !config.ParseFromString(MessageIn(whole, 2)))
    return false;
  config.DeleteByNumber(kAssignmentField);
  config.SerializeToString(&signature.config);
  for (const HloComputationProto& computation : module.computations()) {
    if (computation.id() == module.entry_computation_id())
      signature.entry = computation.program_shape().SerializeAsString();
  }
  module.clear_computations();
  module.clear_schedule();
  module.clear_cross_program_prefetches();
  module.clear_id();
  module.clear_backend_configs();  // What each says counts at its users.
  HloModuleProto::GetReflection()->MutableUnknownFields(&module)->DeleteByNumber(kOtherCoresField);
  signature.module = module.SerializeAsString();
  return true;
}

}  // namespace

absl::Status CheckSignature(const std::string& original, const std::string& written) {
  Signature before, after;
  if (!Read(original, before) || !Read(written, after))
    return Refuse(PhaseRule::kReadable, {}, "a module is no HloModuleProtoWithConfig");
  if (before.entry != after.entry) {
    return Refuse(PhaseRule::kSignature, {},
                  "the entry's parameters or results have other shapes, layouts or memory spaces "
                  "than the original's");
  }
  if (before.module != after.module) {
    return Refuse(PhaseRule::kSignature, {},
                  "a field of the module beside its computations, schedule and preloads, such as "
                  "its donations or its device assignment, is not the original's");
  }
  if (before.config != after.config)
    return Refuse(PhaseRule::kSignature, {}, "the module's configuration is not the original's");
  return absl::OkStatus();
}

}  // namespace mallocgame::hlo
