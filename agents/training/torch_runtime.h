// What callers want to know of Torch or tell it, without seeing it.
#ifndef AGENTS_TRAINING_TORCH_RUNTIME_H_
#define AGENTS_TRAINING_TORCH_RUNTIME_H_

namespace mallocgame::training {

// For one thread: Torch uses no other. Called at the begin of each of ours.
void UseOneTorchThread();
// "2.13.0": that this was built with.
const char* TorchVersion();

}  // namespace mallocgame::training

#endif  // AGENTS_TRAINING_TORCH_RUNTIME_H_
