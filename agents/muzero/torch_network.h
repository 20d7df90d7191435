// The Network that is made of Torch modules. Private to this folder.
#ifndef AGENTS_MUZERO_TORCH_NETWORK_H_
#define AGENTS_MUZERO_TORCH_NETWORK_H_

#include <memory>

#include "agents/muzero/config.h"
#include "agents/muzero/modules.h"
#include "agents/muzero/network.h"

namespace mallocgame::muzero {

// A copy of `networks` as they are now.
std::unique_ptr<Network> CopyForInference(const Networks& networks, const ObservationShape& shape,
                                          const Config& config);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_TORCH_NETWORK_H_
