/* A wall clock that a tester steps: preloaded into a process, without any rights.

   STEPPED_CLOCK is a file of 8 bytes: by how many nanoseconds the wall clock is off, as a signed
   integer. It is mapped into memory, so a step counts for the next look at the clock. Monotonic
   clocks tell the true time, as they do when an administrator steps a real clock. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000LL

static volatile int64_t *off;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("STEPPED_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = fd < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (mapped != MAP_FAILED) off = mapped;
}

static int64_t wall_ns(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    return now.tv_sec * NS + now.tv_nsec + (off ? *off : 0);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return syscall(SYS_clock_gettime, clock, now);
    int64_t ns = wall_ns();
    now->tv_sec = ns / NS;
    now->tv_nsec = ns % NS;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    int64_t ns = wall_ns();
    now->tv_sec = ns / NS;
    now->tv_usec = ns % NS / 1000;
    return 0;
}

time_t time(time_t *out) {
    time_t now = wall_ns() / NS;
    if (out) *out = now;
    return now;
}
