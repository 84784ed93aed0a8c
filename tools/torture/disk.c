/* A layer under a program, by LD_PRELOAD, over the files below $TORTURE_ROOT:
 *
 * TORTURE_FULL=n  the n-th change of a file, and all after it, find the disk full (ENOSPC)
 * TORTURE_KILL=n  the n-th change kills the process
 * TORTURE_LOG=f   changes are noted in f, for the power to be cut at any of them afterwards
 *
 * The process may call torture_full(n) itself: n counts from there, and 0 gives the disk room again.
 * A change is a write, a truncation, a rename or a removal. The log has one line of text for each
 * change and each flush, and the bytes of a write behind it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *root, *log_name;
static long full, killed, changes;
static int log_file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

__attribute__((constructor)) static void start(void) {
    root = getenv("TORTURE_ROOT");
    full = number("TORTURE_FULL");
    killed = number("TORTURE_KILL");
    log_name = getenv("TORTURE_LOG");
}

void torture_full(long at) {
    changes = 0;
    full = at;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_ours(const char *path) {
    return root && path && strncmp(path, root, strlen(root)) == 0;
}

static int path_of(int handle, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, size - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_ours(path);
}

static void note(const char *kind, const char *path, const char *other, long at, const void *data,
                 size_t size) {
    if (!log_name) return;
    pthread_mutex_lock(&lock);
    if (log_file < 0) log_file = open(log_name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    char line[9000];
    int length = snprintf(line, sizeof line, "%s\t%s\t%s\t%ld\t%zu\n", kind, path, other, at,
                          data ? size : 0);
    REAL(write)(log_file, line, length);
    if (data) REAL(write)(log_file, data, size);
    pthread_mutex_unlock(&lock);
}

/* Whether a change may go on. */
static int change(void) {
    long count = __sync_add_and_fetch(&changes, 1);
    if (killed && count == killed) kill(getpid(), SIGKILL);
    if (full && count >= full) {
        errno = ENOSPC;
        return 0;
    }
    return 1;
}

ssize_t write(int handle, const void *data, size_t size) {
    char path[4096];
    if (handle == log_file || !path_of(handle, path, sizeof path))
        return REAL(write)(handle, data, size);
    if (!change()) return -1;
    off_t at = (fcntl(handle, F_GETFL) & O_APPEND) ? lseek(handle, 0, SEEK_END)
                                                   : lseek(handle, 0, SEEK_CUR);
    ssize_t done = REAL(write)(handle, data, size);
    if (done > 0) note("write", path, "", at, data, done);
    return done;
}

static ssize_t put(int handle, const void *data, size_t size, off_t at) {
    char path[4096];
    if (!path_of(handle, path, sizeof path)) return REAL(pwrite64)(handle, data, size, at);
    if (!change()) return -1;
    ssize_t done = REAL(pwrite64)(handle, data, size, at);
    if (done > 0) note("write", path, "", at, data, done);
    return done;
}

ssize_t pwrite(int handle, const void *data, size_t size, off_t at) {
    return put(handle, data, size, at);
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at) {
    return put(handle, data, size, at);
}

static int cut(int handle, off_t size) {
    char path[4096];
    if (!path_of(handle, path, sizeof path)) return REAL(ftruncate64)(handle, size);
    /* A file shrinks on a full disk, too. */
    struct stat facts;
    if (fstat(handle, &facts) == 0 && size > facts.st_size && !change()) return -1;
    int done = REAL(ftruncate64)(handle, size);
    if (done == 0) note("truncate", path, "", size, NULL, 0);
    return done;
}

int ftruncate(int handle, off_t size) { return cut(handle, size); }
int ftruncate64(int handle, off64_t size) { return cut(handle, size); }

int fsync(int handle) {
    char path[4096];
    int done = REAL(fsync)(handle);
    if (done == 0 && path_of(handle, path, sizeof path)) note("flush", path, "", 0, NULL, 0);
    return done;
}

int fdatasync(int handle) {
    char path[4096];
    int done = REAL(fdatasync)(handle);
    if (done == 0 && path_of(handle, path, sizeof path)) note("flush", path, "", 0, NULL, 0);
    return done;
}

int rename(const char *from, const char *to) {
    if (is_ours(to) && killed) change();
    int done = REAL(rename)(from, to);
    if (done == 0 && is_ours(to)) note("rename", from, to, 0, NULL, 0);
    return done;
}

int unlink(const char *path) {
    if (is_ours(path) && killed) change();
    int done = REAL(unlink)(path);
    if (done == 0 && is_ours(path)) note("unlink", path, "", 0, NULL, 0);
    return done;
}
