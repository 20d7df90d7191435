// Reads the programs that libtpu's compile phases hand on.
#include "mallocgame/hlo/cost/lowered_programs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/arena.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/cost/lowered_programs.pb.h"
#include "mallocgame/hlo/cost/price_table.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/proto_forms.h"

namespace mallocgame::hlo {
namespace {

template <class Message>
absl::StatusOr<Message*> Parse(absl::string_view bytes, absl::string_view format,
                               google::protobuf::Arena& arena) {
  auto* message = google::protobuf::Arena::CreateMessage<Message>(&arena);
  if (!bytes.empty() && ParseMessage(bytes, *message)) return message;
  return absl::InvalidArgumentError(
      absl::StrCat("not a program of format ", format, " (damaged, cut short, or compressed)"));
}

// The name that "%NAME = SHAPE opcode(...)" begins with.
absl::string_view NameIn(absl::string_view text) {
  absl::ConsumePrefix(&text, "%");
  return text.substr(0, text.find(" ="));
}

}  // namespace

absl::StatusOr<LoweredProgram> ReadLoweredProgram(absl::string_view isa_program_proto) {
  google::protobuf::Arena arena;
  MG_ASSIGN_OR_RETURN(const IsaProgram* const read,
                      Parse<IsaProgram>(isa_program_proto, "isa_program_proto", arena));
  LoweredProgram program;
  program.name = read->name();
  if (program.name.empty()) {
    return absl::InvalidArgumentError(
        "isa_program_proto: it has no name; allowed are programs of phases 2a and 2b");
  }
  for (const IsaProgram::Call& call : read->calls()) {
    if (call.callee().empty() || call.text().empty()) continue;
    program.calls.emplace(NameIn(call.text()), call.callee());
  }
  return program;
}

absl::StatusOr<std::map<std::string, int64_t>> ReadEstimatedCycles(
    absl::string_view compiler_metadata) {
  google::protobuf::Arena arena;
  MG_ASSIGN_OR_RETURN(const CompilerMetadata* const read,
                      Parse<CompilerMetadata>(compiler_metadata, "compiler_metadata", arena));
  std::map<std::string, int64_t> cycles;
  for (const HloComputationProto& computation : read->hlo().hlo_module().computations()) {
    for (const HloInstructionProto& instruction : computation.instructions()) {
      const auto estimate = EstimatedCycles(instruction.backend_config());
      if (estimate) cycles.emplace(instruction.name(), *estimate);
    }
  }
  return cycles;
}

}  // namespace mallocgame::hlo
