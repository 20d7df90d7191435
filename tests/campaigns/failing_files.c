/* For LD_PRELOAD: the n-th write, fsync or rename under a folder fails, and the clock jumps.
 *
 * FAIL_UNDER    the folder
 * FAIL_CALL     write, fsync or rename
 * FAIL_AT       n, from 1
 * FAIL_ERRNO    the number of the error
 * FAIL_LASTING  1: all calls after the n-th fail too, as on a full disk
 * CLOCK_JUMPS   1: the time of day jumps at every call; the monotonic clock does not
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

static int IsUnder(const char* path) {
  const char* folder = getenv("FAIL_UNDER");
  return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

/* Counts a call, and says whether it is to fail. errno is the error's then. */
static int Fails(const char* call, const char* path) {
  const char* which = getenv("FAIL_CALL");
  if (which == NULL || strcmp(which, call) != 0 || !IsUnder(path)) return 0;
  const long count = atomic_fetch_add(&calls, 1) + 1, at = atol(getenv("FAIL_AT"));
  const char* lasting = getenv("FAIL_LASTING");
  if (count != at && !(count > at && lasting != NULL && *lasting == '1')) return 0;
  errno = atoi(getenv("FAIL_ERRNO"));
  return 1;
}

static int FailsAt(const char* call, int fd) {
  char link[64], path[PATH_MAX];
  const int before = errno;
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof(path) - 1);
  errno = before;
  if (size <= 0) return 0;
  path[size] = '\0';
  return Fails(call, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void* bytes, size_t size) {
  return FailsAt("write", fd) ? -1 : REAL(write)(fd, bytes, size);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  return FailsAt("write", fd) ? -1 : REAL(pwrite)(fd, bytes, size, at);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  return FailsAt("write", fd) ? -1 : REAL(writev)(fd, parts, count);
}

int fsync(int fd) { return FailsAt("fsync", fd) ? -1 : REAL(fsync)(fd); }

int rename(const char* from, const char* to) {
  return Fails("rename", to) ? -1 : REAL(rename)(from, to);
}

/* Seconds that the time of day is wrong by, in turn. */
static time_t Jump(void) {
  static const time_t jumps[] = {0, 86400, -86400, 315360000, -3600, 1};
  static atomic_ulong turn;
  if (getenv("CLOCK_JUMPS") == NULL) return 0;
  return jumps[atomic_fetch_add(&turn, 1) % (sizeof(jumps) / sizeof(jumps[0]))];
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int status = REAL(clock_gettime)(clock, now);
  if (status == 0 && clock == CLOCK_REALTIME) now->tv_sec += Jump();
  return status;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  const int status = REAL(gettimeofday)(now, zone);
  if (status == 0) now->tv_sec += Jump();
  return status;
}

time_t time(time_t* now) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  if (now != NULL) *now = found.tv_sec;
  return found.tv_sec;
}
