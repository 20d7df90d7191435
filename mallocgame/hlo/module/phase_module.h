// The two messages of the compiler's first phase that say where everything lies.
#pragma once

#include <string>

namespace mallocgame {

// Serialized messages of xla/service/hlo.proto, decompressed. The buffer assignment names the
// values of the module by the ids of the instructions that define them.
struct PhaseModule {
  std::string module;             // an HloModuleProtoWithConfig ("opt_hlo"), scheduled
  std::string buffer_assignment;  // a BufferAssignmentProto
};

}  // namespace mallocgame
