// What callers ask of Torch without including it.
#pragma once

namespace mallocgame::training {

// Makes Torch do the work of the calling thread in that thread alone. Each of our threads calls it
// first.
void UseOneTorchThread();
// Whether Torch finds a GPU that it can work on.
bool HasCuda();

}  // namespace mallocgame::training
