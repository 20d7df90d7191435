// The serialized messages in which XLA's tools hand out a module. Private to the folder.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Arena;
class MessageLite;
}  // namespace google::protobuf

namespace mallocgame::hlo {

class HloProto;

// Reads any of these, found out by looking:
// - HloProto, as --xla_dump_hlo_as_proto writes it;
// - HloModuleProto, which as_serialized_hlo_module_proto() of JAX gives;
// - HloModuleProtoWithConfig, a module with how it was compiled;
// - HloSnapshot, an HloProto with arguments, as --xla_dump_hlo_snapshots writes it.
// Each instruction has its own backend_config, also where the message keeps it in a table. The
// message lives on `arena`. InvalidArgument: it is none of them, or holds no computation.
absl::StatusOr<HloProto*> ParseAnyForm(absl::string_view bytes, google::protobuf::Arena& arena);

// Reads one message. False: the bytes are no such message, or 2 GiB and more, of which protobuf can
// read none.
bool ParseMessage(absl::string_view bytes, google::protobuf::MessageLite& message);

}  // namespace mallocgame::hlo
