// What the compiler's first phase gives, as far as it says where everything lies.
#ifndef MALLOCGAME_HLO_PHASE_MODULE_H_
#define MALLOCGAME_HLO_PHASE_MODULE_H_

#include <string>

namespace mallocgame {

// The two messages of the compiler's first phase that say where everything lies.
struct PhaseModule {
  std::string module;             // a HloModuleProtoWithConfig (opt_hlo), scheduled
  std::string buffer_assignment;  // a BufferAssignmentProto
};

}  // namespace mallocgame

#endif  // MALLOCGAME_HLO_PHASE_MODULE_H_
