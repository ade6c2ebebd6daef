/* The measuring instrument, in C so that it adds next to nothing: a terminal that drains, a person that types, a peer that relays.
 *
 *   instrument drain MARK CMD...      run CMD on a PTY, read all; prints bytes, seconds from first byte to MARK, a checksum
 *   instrument echo N GAP_US CMD...   run CMD on a PTY, wait for READY, type N keys one at a time; prints N round trips in us
 *   instrument relay CMD...           the plain relay: poll, 64 KB buffers, raw mode; what a wrapper costs at least
 *   instrument mirror                 inner program: prints READY, answers each key with itself
 *   instrument flood                  inner program: floods; every line shows the latest key as <<key>>, READY until there is one
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define LIFE_S 20 /* inner programs end by themselves, whatever became of the others */
#define END_KEY 4 /* ends an inner program */

static char buffer[65536];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void write_all(int fd, const char *data, ssize_t size) {
    while (size > 0) {
        ssize_t done = write(fd, data, size);
        if (done < 0) { if (errno == EINTR || errno == EAGAIN) continue; exit(1); }
        data += done;
        size -= done;
    }
}

/* Whatever a peer left in the background (a server, a flood nobody reads) would disturb the next measurement. */
static void end_the_rest(void) {
    char path[64], line[1 << 14];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (;;) {
        int fd = open(path, O_RDONLY);
        ssize_t got = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
        if (fd >= 0) close(fd);
        if (got <= 0) return;
        line[got] = 0;
        for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) kill(atoi(word), SIGKILL);
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        usleep(2000);
    }
}

static pid_t start(char **command, int *master) {
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans become our children */
    struct winsize size = {.ws_row = 40, .ws_col = 120};
    pid_t pid = forkpty(master, NULL, NULL, &size);
    if (pid == 0) {
        execvp(command[0], command);
        perror(command[0]);
        _exit(127);
    }
    return pid;
}

static int finish(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int drain(const char *mark, char **command) {
    int master;
    double begun = now();
    pid_t pid = start(command, &master);
    size_t length = strlen(mark), kept = 0;
    char tail[256];
    double first = 0, last = 0;
    uint64_t bytes = 0, sum = 14695981039346656037ULL;
    for (;;) {
        ssize_t got = read(master, buffer, sizeof buffer);
        if (got <= 0) break;
        if (!first) first = now();
        if (!last) {
            size_t fresh = got < 200 ? got : 200;           /* the mark stands at the end of a chunk, or over a border */
            if (kept + fresh > sizeof tail) { memmove(tail, tail + kept - length, length); kept = length; }
            memcpy(tail + kept, buffer + got - fresh, fresh);
            kept += fresh;
            if (memmem(tail, kept, mark, length)) last = now();
            if (kept > length) { memmove(tail, tail + kept - length, length); kept = length; }
        }
        for (ssize_t i = (61 - bytes % 61) % 61; i < got; i += 61) sum = (sum ^ (unsigned char)buffer[i]) * 1099511628211ULL;
        bytes += got;
    }
    int code = finish(pid);
    double whole = now() - begun;
    end_the_rest();
    printf("{\"bytes\": %llu, \"seconds\": %.6f, \"whole\": %.6f, \"sum\": \"%llx\", \"exit\": %d}\n",
           (unsigned long long)bytes, last ? last - first : -1.0, whole, (unsigned long long)sum, code);
    return 0;
}

static int wait_for(int fd, const char *mark, double limit) {
    char seen[8192];
    size_t kept = 0, length = strlen(mark);
    double end = now() + limit;
    while (now() < end) {
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, 100) <= 0) continue;
        ssize_t got = read(fd, seen + kept, sizeof seen - kept);
        if (got <= 0) return 0;
        kept += got;
        if (memmem(seen, kept, mark, length)) return 1;
        if (kept > 4096) { memmove(seen, seen + kept - 256, 256); kept = 256; }
    }
    return 0;
}

static int echo(int rounds, int gap_us, char **command) {
    int master;
    pid_t pid = start(command, &master);
    if (!wait_for(master, "READY", 20)) { printf("[]\n"); kill(pid, SIGKILL); end_the_rest(); return 1; }
    usleep(300000);
    printf("[");
    for (int i = 0; i < rounds; i++) {
        struct pollfd p = {master, POLLIN, 0};
        while (gap_us && poll(&p, 1, 0) > 0 && read(master, buffer, sizeof buffer) > 0) {}
        char key = 'a' + i % 26, answer[8];
        snprintf(answer, sizeof answer, gap_us ? "%c" : "<<%c>>", key);
        double begun = now();
        write_all(master, &key, 1);
        if (!wait_for(master, answer, 5)) break;
        printf("%s%.1f", i ? ", " : "", (now() - begun) * 1e6);
        if (gap_us) usleep(gap_us);
        else usleep(20000);
    }
    printf("]\n");
    fflush(stdout);
    char end = END_KEY;
    write_all(master, &end, 1);
    for (double until = now() + 1; now() < until;) { /* to the end of what it still says, not much longer */
        struct pollfd p = {master, POLLIN, 0};
        if (poll(&p, 1, 50) > 0 && read(master, buffer, sizeof buffer) <= 0) break;
    }
    close(master);
    kill(pid, SIGKILL);
    finish(pid);
    end_the_rest();
    return 0;
}

static struct termios original;

static void raw(void) {
    struct termios t;
    if (tcgetattr(0, &original)) return;
    t = original;
    cfmakeraw(&t);
    tcsetattr(0, TCSANOW, &t);
}

static int relay(char **command) {
    int master;
    pid_t pid = start(command, &master);
    raw();
    struct pollfd p[2] = {{master, POLLIN, 0}, {0, POLLIN, 0}};
    for (;;) {
        if (poll(p, 2, -1) < 0) continue;
        if (p[0].revents) {
            ssize_t got = read(master, buffer, sizeof buffer);
            if (got <= 0) break;
            write_all(1, buffer, got);
        }
        if (p[1].revents) {
            ssize_t got = read(0, buffer, sizeof buffer);
            if (got <= 0) p[1].fd = -1;
            else write_all(master, buffer, got);
        }
    }
    int code = finish(pid);
    tcsetattr(0, TCSADRAIN, &original);
    return code;
}

static int mirror(void) {
    alarm(LIFE_S);
    raw();
    write_all(1, "READY", 5);
    char key;
    while (read(0, &key, 1) == 1 && key != END_KEY) write_all(1, &key, 1);
    return 0;
}

static int flood(void) {
    alarm(LIFE_S);
    raw();
    char line[160], key = '?';
    for (;;) {
        struct pollfd p = {0, POLLIN, 0};
        if (poll(&p, 1, 0) > 0 && (read(0, &key, 1) != 1 || key == END_KEY)) return 0;
        int size = snprintf(line, sizeof line, "\033[32m%s <<%c>>\033[0m jumps over the lazy dog, again and again and again and again\r\n",
                            key == '?' ? "READY" : "the quick brown fox", key);
        write_all(1, line, size);
    }
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_DFL);
    if (argc > 3 && !strcmp(argv[1], "drain")) return drain(argv[2], argv + 3);
    if (argc > 4 && !strcmp(argv[1], "echo")) return echo(atoi(argv[2]), atoi(argv[3]), argv + 4);
    if (argc > 2 && !strcmp(argv[1], "relay")) return relay(argv + 2);
    if (argc > 1 && !strcmp(argv[1], "mirror")) return mirror();
    if (argc > 1 && !strcmp(argv[1], "flood")) return flood();
    fprintf(stderr, "usage: instrument drain|echo|relay|mirror|flood ...\n");
    return 2;
}
