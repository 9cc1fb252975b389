/* See locks.h. */
#include "store/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>

static int of_file(int command)
{
    switch (command) {
    case F_GETLK:
        return F_OFD_GETLK;
    case F_SETLK:
        return F_OFD_SETLK;
    case F_SETLKW:
        return F_OFD_SETLKW;
    default:
        return -1;
    }
}

static atomic_bool missing;
bool mg_locks_missing(void)
{
    return atomic_load(&missing);
}

/* A file system without locks: SQLite would take it for a lock that somebody else has, and wait. */
static int none(void)
{
    atomic_store(&missing, true);
    errno = EIO;
    return -1;
}

static int lock_file(int fd, int command, ...)
{
    va_list ap;
    va_start(ap, command);
    void *argument = va_arg(ap, void *);
    va_end(ap);
    int other = of_file(command);
    if (other < 0) return fcntl(fd, command, argument);
    ((struct flock *)argument)->l_pid = 0;
    int r = fcntl(fd, other, argument);
    if (r < 0 && errno == EINVAL) r = fcntl(fd, command, argument); /* a kernel or sandbox without them */
    return r < 0 && (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) ? none() : r;
}

static void set_call(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    if (vfs && vfs->iVersion >= 3) vfs->xSetSystemCall(vfs, "fcntl", (sqlite3_syscall_ptr)lock_file);
}

void mg_locks_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_call);
}
