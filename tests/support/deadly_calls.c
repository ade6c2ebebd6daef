/* Kills its own process at the N-th place among its calls on files, locks and sockets.  Preloaded into a hub that is to
   die.  Every call has a place before and one after it; one that writes has a third in the middle, when half is written.
   Counting costs next to nothing, and calls inside SQLite count like any other. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long left_to_live;
static pid_t victim;
static int witness = -1;
static int hosts_only;

/* From now on: die at this place, and tell the witness (a descriptor) which call it was.  `host`: not this process, but
   the session host that it will fork; that one lives in a session which it does not lead, as no other does here. */
void deadly_arm(long place, int tell, int host)
{
    witness = tell;
    hosts_only = host;
    victim = getpid();
    left_to_live = place;
}

static int reached(const char *call, const char *when)
{
    if (!victim || (hosts_only ? getsid(0) == getpid() : getpid() != victim))
        return 0;
    if (atomic_fetch_sub(&left_to_live, 1) != 1)
        return 0;
    if (witness >= 0) {
        char line[80];
        line[0] = 0;
        strcat(strcat(strcat(strcat(line, when), " "), call), "\n");
        syscall(SYS_write, witness, line, strlen(line));
    }
    return 1;
}

static void place(const char *call, const char *when)
{
    if (reached(call, when))
        kill(getpid(), SIGKILL);
}

#define WRAP(type, name, parameters, arguments)                                                                        \
    type name parameters                                                                                               \
    {                                                                                                                  \
        static type(*real) parameters;                                                                                 \
        if (!real)                                                                                                     \
            real = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                                        \
        place(#name, "before");                                                                                        \
        type result = real arguments;                                                                                  \
        place(#name, "after");                                                                                         \
        return result;                                                                                                 \
    }

/* The same for a call that writes `count` bytes: half of them may be all there is. */
#define WRAP_WRITE(type, name, parameters, arguments, count, half)                                                     \
    type name parameters                                                                                               \
    {                                                                                                                  \
        static type(*real) parameters;                                                                                 \
        if (!real)                                                                                                     \
            real = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                                        \
        place(#name, "before");                                                                                        \
        if (count > 1 && reached(#name, "in the middle of")) {                                                         \
            real half;                                                                                                 \
            kill(getpid(), SIGKILL);                                                                                   \
        }                                                                                                              \
        type result = real arguments;                                                                                  \
        place(#name, "after");                                                                                         \
        return result;                                                                                                 \
    }

#define WRAP_OPEN(name, head, head_arguments)                                                                          \
    int name(head, int flags, ...)                                                                                     \
    {                                                                                                                  \
        static int (*real)(head, int, ...);                                                                            \
        if (!real)                                                                                                     \
            real = (int (*)(head, int, ...))dlsym(RTLD_NEXT, #name);                                                   \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;                                              \
        va_end(rest);                                                                                                  \
        place(#name, "before");                                                                                        \
        int result = real(head_arguments, flags, mode);                                                                \
        place(#name, "after");                                                                                         \
        return result;                                                                                                 \
    }

#define WRAP_FCNTL(name)                                                                                               \
    int name(int fd, int command, ...)                                                                                 \
    {                                                                                                                  \
        static int (*real)(int, int, ...);                                                                             \
        if (!real)                                                                                                     \
            real = (int (*)(int, int, ...))dlsym(RTLD_NEXT, #name);                                                    \
        va_list rest;                                                                                                  \
        va_start(rest, command);                                                                                       \
        void *argument = va_arg(rest, void *);                                                                         \
        va_end(rest);                                                                                                  \
        place(#name, "before");                                                                                        \
        int result = real(fd, command, argument);                                                                      \
        place(#name, "after");                                                                                         \
        return result;                                                                                                 \
    }

WRAP_OPEN(open, const char *path, path)
WRAP_OPEN(open64, const char *path, path)
WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)
WRAP_WRITE(ssize_t, write, (int fd, const void *data, size_t count), (fd, data, count), count, (fd, data, count / 2))
WRAP_WRITE(ssize_t, pwrite64, (int fd, const void *data, size_t count, off64_t at), (fd, data, count, at), count,
           (fd, data, count / 2, at))
WRAP_WRITE(ssize_t, send, (int fd, const void *data, size_t count, int flags), (fd, data, count, flags), count,
           (fd, data, count / 2, flags))
WRAP(ssize_t, recv, (int fd, void *data, size_t count, int flags), (fd, data, count, flags))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, fdatasync, (int fd), (fd))
WRAP(int, ftruncate, (int fd, off_t size), (fd, size))
WRAP(int, ftruncate64, (int fd, off64_t size), (fd, size))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, chmod, (const char *path, mode_t mode), (path, mode))
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, flock, (int fd, int operation), (fd, operation))
WRAP(int, close, (int fd), (fd))
WRAP(int, bind, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size))
WRAP(int, listen, (int fd, int backlog), (fd, backlog))
WRAP(int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags), (fd, address, size, flags))
