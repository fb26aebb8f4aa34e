/* Makes files fail or slow to write: loaded before a server (LD_PRELOAD), it reads the file named by the variable FAULTS
 * before each read, write, fsync and msync of a file whose path contains the text of the variable FAULTY. That file says
 * "read ERRNO", "write ERRNO", "sync ERRNO", "slow MS" (the duration of each sync), "stall MS" (that of each write) or
 * nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The number after the name of a fault, if that is active now. */
static int wanted(int fd, const char *name) {
    char link[64], path[4096], word[16];
    int number = 0, found;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len <= 0) return 0;
    path[len] = 0;
    const char *faults = getenv("FAULTS"), *faulty = getenv("FAULTY");
    if (!faults || !faulty || !strstr(path, faulty)) return 0;
    FILE *file = fopen(faults, "r");
    if (!file) return 0;
    found = fscanf(file, "%15s %d", word, &number);
    fclose(file);
    return found == 2 && !strcmp(word, name) ? number : 0;
}

static void wait_for(int ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    if (ms) nanosleep(&time, NULL);
}

/* Waits or fails as requested, and otherwise calls the function of this name, if there is one. */
static int synced(int fd, const char *name) {
    int (*real)(int) = name ? (int (*)(int))dlsym(RTLD_NEXT, name) : NULL;
    int ms = wanted(fd, "slow"), error = wanted(fd, "sync");
    wait_for(ms);
    if (!error) return real ? real(fd) : 0;
    errno = error;
    return -1;
}

int fsync(int fd) {
    return synced(fd, "fsync");
}

int fdatasync(int fd) {
    return synced(fd, "fdatasync");
}

/* Syncs a mapped file: the one whose mapping contains the address. */
int msync(void *address, size_t length, int flags) {
    int (*real)(void *, size_t, int) = (int (*)(void *, size_t, int))dlsym(RTLD_NEXT, "msync");
    char line[4200], path[4096];
    unsigned long from, to, at = (unsigned long)address;
    int fd = -1, result, error;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fd < 0 && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %4095[^\n]", &from, &to, path) == 3 && from <= at && at < to)
            fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (maps) fclose(maps);
    if (fd < 0) return real(address, length, flags);
    result = synced(fd, NULL);
    error = errno;
    close(fd);
    errno = error;
    return result ? result : real(address, length, flags);
}

/* Whether a call must fail; errno has the reason. */
static int fails(int fd, const char *name) {
    int before = errno, error = wanted(fd, name);
    if (!strcmp(name, "write")) wait_for(wanted(fd, "stall"));
    errno = error ? error : before;
    return error;
}

#define MOVES(name, fault, bytes_type, count_type, last, ...)                                                     \
    ssize_t name(int fd, bytes_type bytes, count_type count last) {                                               \
        ssize_t (*real)(int, bytes_type, count_type last) =                                                       \
            (ssize_t (*)(int, bytes_type, count_type last))dlsym(RTLD_NEXT, #name);                               \
        return fails(fd, fault) ? -1 : real(fd, bytes, count __VA_ARGS__);                                        \
    }
#define COMMA ,

MOVES(write, "write", const void *, size_t, )
MOVES(writev, "write", const struct iovec *, int, )
MOVES(pwrite, "write", const void *, size_t, COMMA off_t offset, COMMA offset)
MOVES(pwrite64, "write", const void *, size_t, COMMA off_t offset, COMMA offset)
MOVES(pwritev, "write", const struct iovec *, int, COMMA off_t offset, COMMA offset)
MOVES(pread64, "read", void *, size_t, COMMA off_t offset, COMMA offset)
