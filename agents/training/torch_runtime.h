// What callers ask of Torch without including it.
#ifndef AGENTS_TRAINING_TORCH_RUNTIME_H_
#define AGENTS_TRAINING_TORCH_RUNTIME_H_

namespace mallocgame::training {

// Makes Torch do the work of the calling thread in that thread alone. Each of our threads calls it
// first.
void UseOneTorchThread();
// Whether Torch finds a GPU that it can work on.
bool HasCuda();
// The version of Torch that this was built with, such as "2.13.0".
const char* TorchVersion();

}  // namespace mallocgame::training

#endif  // AGENTS_TRAINING_TORCH_RUNTIME_H_
