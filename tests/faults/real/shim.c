/* In front of the C library, by LD_PRELOAD: a disk that fails or hangs at a sync, a clock that is wrong.
 *
 * COMPACTD_SHIM names a folder. Each call looks there again: a file `fails` refuses every sync with EIO, a file
 * `hangs` keeps it until that file is gone, and COMPACTD_SHIM_CLOCK_S is added to the real time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int is_there(const char *name)
{
    char path[4096];
    struct stat found;
    const char *folder = getenv("COMPACTD_SHIM");
    if (folder == NULL)
        return 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &found) == 0;
}

static int synced(int (*real)(int), int fd)
{
    while (is_there("hangs"))
        usleep(2000);
    if (is_there("fails")) {
        errno = EIO;
        return -1;
    }
    return real(fd);
}

int fsync(int fd)
{
    return synced((int (*)(int))dlsym(RTLD_NEXT, "fsync"), fd);
}

int fdatasync(int fd)
{
    return synced((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"), fd);
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    static int (*real)(clockid_t, struct timespec *);
    static long shift_s = 0;
    if (real == NULL) {
        const char *shift = getenv("COMPACTD_SHIM_CLOCK_S");
        shift_s = shift == NULL ? 0 : atol(shift);
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    }
    int done = real(clock, at);
    if (clock == CLOCK_REALTIME)
        at->tv_sec += shift_s;
    return done;
}
