// What callers ask of Torch without including it.
#ifndef AGENTS_TRAINING_TORCH_RUNTIME_H_
#define AGENTS_TRAINING_TORCH_RUNTIME_H_

namespace mallocgame::training {

// Makes Torch do the work of the calling thread in that thread alone. Each of our threads calls it
// first.
void UseOneTorchThread();
// Whether Torch finds a GPU that it can work on.
bool HasCuda();

}  // namespace mallocgame::training

#endif  // AGENTS_TRAINING_TORCH_RUNTIME_H_
