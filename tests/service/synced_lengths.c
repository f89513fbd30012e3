/* Preloaded into a service: notes the length that each file had when it was last synced, in the file named by
 * SYNC_LOG, one "LENGTH PATH" a line; a folder has the length -1. With SYNC_NOTHING set, syncing does nothing and
 * notes nothing, which is what a program without fsync looks like to a disk that loses power. While the file named by
 * SYNC_BROKEN is there, syncing fails as on a disk that does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int noted(int fd, const char *name)
{
    if (getenv("SYNC_NOTHING") != NULL)
        return 0;
    const char *broken = getenv("SYNC_BROKEN");
    if (broken != NULL && access(broken, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat before;
    int known = fstat(fd, &before) == 0;
    int result = real(fd);
    const char *log = getenv("SYNC_LOG");
    if (result == 0 && known && log != NULL) {
        char link[64], path[PATH_MAX], line[PATH_MAX + 32];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, sizeof path - 1);
        if (length > 0) {
            path[length] = '\0';
            long long size = S_ISDIR(before.st_mode) ? -1LL : (long long)before.st_size;
            int written = snprintf(line, sizeof line, "%lld %s\n", size, path);
            int out = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
            if (out >= 0) {
                if (write(out, line, (size_t)written) != written)
                    _exit(97);
                close(out);
            }
        }
    }
    return result;
}

int fsync(int fd) { return noted(fd, "fsync"); }
int fdatasync(int fd) { return noted(fd, "fdatasync"); }
