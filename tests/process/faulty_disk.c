/* A folder whose disk fails as it is told: preloaded into a process, without any rights.

   FAULTY_FOLDER is the folder (no other path is touched), FAULTY_CONTROL another one. Its file
   `mode` says what fails from now on: "eio", each sync; "erofs", each call that would change
   something; "slow 150", no call, but each sync takes 150 ms longer. Of each sync that is asked for
   while "eio" is set, a line goes to its file `asked`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int inside(const char *path) {
    const char *folder = getenv("FAULTY_FOLDER");
    return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int in_folder(int fd, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, size - 1);
    path[length > 0 ? length : 0] = 0;
    return inside(path);
}

static void control(char *path, size_t size, const char *name) {
    snprintf(path, size, "%s/%s", getenv("FAULTY_CONTROL"), name);
}

static int read_mode(char mode[16]) {
    char path[4096];
    memset(mode, 0, 16);
    control(path, sizeof path, "mode");
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
    if (fd < 0) return 0;
    long got = syscall(SYS_read, fd, mode, 15);
    syscall(SYS_close, fd);
    return got > 0;
}

static int mode_is(const char *wanted) {
    char mode[16];
    return read_mode(mode) && strcmp(mode, wanted) == 0;
}

static void be_slow(void) {
    char mode[16];
    long ms;
    if (read_mode(mode) && sscanf(mode, "slow %ld", &ms) == 1) usleep(ms * 1000);
}

static int sync_of(int fd, const char *name, long number) {
    char path[4096], asked[4096], line[4200];
    int ours = in_folder(fd, path, sizeof path);
    if (ours) be_slow();
    if (ours && mode_is("eio")) {
        control(asked, sizeof asked, "asked");
        int to = syscall(SYS_openat, AT_FDCWD, asked, O_WRONLY | O_CREAT | O_APPEND, 0600);
        int size = snprintf(line, sizeof line, "%s %s\n", name, path);
        syscall(SYS_write, to, line, size);
        syscall(SYS_close, to);
        errno = EIO;
        return -1;
    }
    return syscall(number, fd);
}

int fsync(int fd) { return sync_of(fd, "fsync", SYS_fsync); }
int fdatasync(int fd) { return sync_of(fd, "fdatasync", SYS_fdatasync); }

static int refused_fd(int fd) {
    char path[4096];
    return in_folder(fd, path, sizeof path) && mode_is("erofs");
}

static int refused_path(const char *path) { return inside(path) && mode_is("erofs"); }

#define READ_ONLY(refused) if (refused) { errno = EROFS; return -1; }
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) {
    READ_ONLY(fd > 2 && refused_fd(fd))
    return syscall(SYS_write, fd, data, size);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    READ_ONLY(refused_fd(fd))
    return NEXT(pwrite64)(fd, data, size, at);
}

int ftruncate64(int fd, off64_t size) {
    READ_ONLY(refused_fd(fd))
    return NEXT(ftruncate64)(fd, size);
}

static int opened(const char *path, int flags, mode_t mode) {
    if (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) READ_ONLY(refused_path(path))
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return opened(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return opened(path, flags | O_LARGEFILE, mode);
}

int rename(const char *from, const char *to) {
    READ_ONLY(refused_path(from))
    return NEXT(rename)(from, to);
}

int unlink(const char *path) {
    READ_ONLY(refused_path(path))
    return NEXT(unlink)(path);
}
