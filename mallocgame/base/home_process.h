// The process that something was made in. fork() copies memory but no threads: a child that finds
// itself with a copy of threads, or of what they hold, must not wait for them.
#pragma once

#include <cstdint>

namespace mallocgame {

class HomeProcess {
 public:
  // This process.
  HomeProcess();

  // False in a child that was forked since. It costs no system call.
  bool IsThisOne() const;

 private:
  int64_t forks_;  // of the first process until here
};

}  // namespace mallocgame
