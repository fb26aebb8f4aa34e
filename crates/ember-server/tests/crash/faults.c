/* Makes files of an AOF fail or take long to write: loaded before a server (LD_PRELOAD), it looks before each write and
 * fsync of such a file into the file that the variable FAULTS names. That says "write ERRNO", "sync ERRNO", "slow MS"
 * (each fsync takes so long) or nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* The number that stands behind the name of a fault, if that is wanted now. */
static int wanted(int fd, const char *name) {
    char link[64], path[4096], word[16];
    int number = 0, found;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len <= 0) return 0;
    path[len] = 0;
    const char *faults = getenv("FAULTS");
    if (!strstr(path, "appendonlydir") || !faults) return 0;
    FILE *file = fopen(faults, "r");
    if (!file) return 0;
    found = fscanf(file, "%15s %d", word, &number);
    fclose(file);
    return found == 2 && !strcmp(word, name) ? number : 0;
}

static int synced(int fd, const char *name) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int ms = wanted(fd, "slow"), error = wanted(fd, "sync");
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    if (ms) nanosleep(&time, NULL);
    if (!error) return real(fd);
    errno = error;
    return -1;
}

int fsync(int fd) {
    return synced(fd, "fsync");
}

int fdatasync(int fd) {
    return synced(fd, "fdatasync");
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset) {
    ssize_t (*real)(int, const void *, size_t, off_t) =
        (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
    int error = wanted(fd, "write");
    if (!error) return real(fd, bytes, count, offset);
    errno = error;
    return -1;
}
