/* A disk, preloaded into a service: what it keeps when the power fails, and how it fails itself. By environment:
 *
 * DISK_LOG     file that every sync is noted in: "LENGTH PATH" for a file (its length then), "+ PATH" for each name
 *              in a folder that is synced, "# N PATH" before the N-th sync of the journal's.
 * DISK_NOTHING set: syncing does nothing and notes nothing, as in a program without it.
 * DISK_SKIP    "N": the N-th sync of the journal's (its folder, those above it, its files) does nothing.
 * DISK_KILL    "before|after PART N": SIGKILL before or after the N-th sync of a path that contains PART.
 * DISK_BROKEN  while that file is there, syncing fails with EIO.
 * DISK_FULL    while that file is there, writing to files of the journal fails with ENOSPC.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t (*real_write)(int, const void *, size_t);
static atomic_int journal_syncs, matching_syncs;

__attribute__((constructor)) static void find_write(void)
{
    real_write = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
}

static int there(const char *variable)
{
    const char *path = getenv(variable);
    return path != NULL && access(path, F_OK) == 0;
}

static int path_of(int fd, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0 && path[0] == '/';
}

static int of_journal(const char *path, int is_folder)
{
    return is_folder ? strstr(path, "alerts") == NULL : strstr(path, "/journal/") != NULL;
}

static void note(const char *format, ...)
{
    const char *log = getenv("DISK_LOG");
    if (log == NULL)
        return;
    char line[PATH_MAX * 2];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    int out = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (out < 0 || real_write(out, line, (size_t)length) != length)
        _exit(97);
    close(out);
}

static void note_names(const char *folder)
{
    DIR *open_folder = opendir(folder);
    if (open_folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(open_folder)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            note("+ %s/%s\n", folder, entry->d_name);
    closedir(open_folder);
}

static void maybe_kill(const char *when, const char *path, int count)
{
    char wanted[16], part[256];
    int number;
    const char *order = getenv("DISK_KILL");
    if (order == NULL || sscanf(order, "%15s %255s %d", wanted, part, &number) != 3)
        return;
    if (strcmp(wanted, when) == 0 && strstr(path, part) != NULL && count == number)
        kill(getpid(), SIGKILL);
}

static int matches_kill(const char *path)
{
    char wanted[16], part[256];
    int number;
    const char *order = getenv("DISK_KILL");
    return order != NULL && sscanf(order, "%15s %255s %d", wanted, part, &number) == 3 && strstr(path, part) != NULL;
}

static int synced(int fd, const char *name)
{
    if (getenv("DISK_NOTHING") != NULL)
        return 0;
    if (there("DISK_BROKEN")) {
        errno = EIO;
        return -1;
    }
    char path[PATH_MAX];
    struct stat before;
    int known = path_of(fd, path) && fstat(fd, &before) == 0;
    int is_folder = known && S_ISDIR(before.st_mode);
    const char *skip = getenv("DISK_SKIP");
    if (known && of_journal(path, is_folder)) {
        int number = atomic_fetch_add(&journal_syncs, 1) + 1;
        note("# %d %s\n", number, path);
        if (skip != NULL && number == atoi(skip))
            return 0;
    }
    int count = known && matches_kill(path) ? atomic_fetch_add(&matching_syncs, 1) + 1 : 0;
    maybe_kill("before", path, count);
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int result = real(fd);
    if (result == 0 && is_folder)
        note_names(path);
    else if (result == 0 && known)
        note("%lld %s\n", (long long)before.st_size, path);
    maybe_kill("after", path, count);
    return result;
}

int fsync(int fd) { return synced(fd, "fsync"); }
int fdatasync(int fd) { return synced(fd, "fdatasync"); }

ssize_t write(int fd, const void *data, size_t length)
{
    char path[PATH_MAX];
    if (there("DISK_FULL") && path_of(fd, path) && strstr(path, "/journal/") != NULL) {
        errno = ENOSPC;
        return -1;
    }
    return real_write(fd, data, length);
}
