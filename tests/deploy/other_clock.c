/* A wall clock that is OTHER_CLOCK_S seconds ahead: preloaded into a process, without any rights. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t which, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, which, now);
    const char *ahead = getenv("OTHER_CLOCK_S");
    if (!failed && which == CLOCK_REALTIME && ahead) now->tv_sec += atol(ahead);
    return failed;
}
