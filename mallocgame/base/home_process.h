// The process that something was made in. fork() copies memory but no threads: a child that finds
// itself with a copy of threads, or of what they hold, must not wait for them.
#ifndef MALLOCGAME_BASE_HOME_PROCESS_H_
#define MALLOCGAME_BASE_HOME_PROCESS_H_

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

#endif  // MALLOCGAME_BASE_HOME_PROCESS_H_
