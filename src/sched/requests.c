/* Requests of `margay ctl` to the scheduler: a line of text over a socket, and a line back.
 *   adopt PID SHARE NAME    the process' launches are scheduled from now on */
#include "sched/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 2000

static bool address_of(const char *path, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (size_t)snprintf(a->sun_path, sizeof a->sun_path, "%s", path) < sizeof a->sun_path;
}

/* What a scheduler left behind that was killed makes room; nothing else does. */
static bool make_room(const char *path, const struct sockaddr_un *a, struct mg_diag *d)
{
    struct stat st;
    if (lstat(path, &st)) return true;
    int fd = S_ISSOCK(st.st_mode) ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    bool dead = fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) && errno == ECONNREFUSED;
    if (fd >= 0) close(fd);
    if (dead && !unlink(path)) return true;
    mg_diag_err(d, MG_ERR_INPUT, "%s: %s", path,
                !S_ISSOCK(st.st_mode) ? "is no socket"
                : dead                ? strerror(errno)
                                      : "another scheduler uses this directory");
    return false;
}

/* One scheduler at a time looks at a directory and puts its socket there: one that is bound and does not listen yet
 * looks as if its scheduler were dead. A lock that cannot be had in time is gone without. -1: no directory. */
static int lock_directory(const char *path)
{
    char dir[sizeof(((struct sockaddr_un *)0)->sun_path)] = ".";
    const char *slash = strrchr(path, '/');
    if (slash) snprintf(dir, sizeof dir, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int ms = 0; fd >= 0 && ms < PATIENCE_MS && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK; ms += 10)
        poll(NULL, 0, 10);
    return fd;
}

static bool take_place(struct mg_sched *s, const char *path, const struct sockaddr_un *a, struct mg_diag *d)
{
    if (!make_room(path, a, d)) return false;
    s->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->socket >= 0 && !bind(s->socket, (const struct sockaddr *)a, sizeof *a) && (s->socket_path = strdup(path)) &&
        !listen(s->socket, 8))
        return true;
    mg_diag_err(d, MG_ERR_IO, "%s: %s", path, strerror(errno));
    return false;
}

bool mg_sched_listen(struct mg_sched *s, const char *path, struct mg_diag *d)
{
    struct sockaddr_un a;
    if (!address_of(path, &a)) {
        mg_diag_err(d, MG_ERR_INPUT, "%s: too long for a socket", path);
        return false;
    }
    int lock = lock_directory(path);
    bool ok = take_place(s, path, &a, d);
    if (lock >= 0) close(lock);
    return ok;
}

/* In this order: a socket that is closed makes room for another scheduler's, which would be unlinked. */
void mg_sched_deafen(struct mg_sched *s)
{
    if (s->socket < 0) return;
    if (s->socket_path) unlink(s->socket_path);
    close(s->socket);
    s->socket = -1;
}

/* ---- adopting ------------------------------------------------------------------------------------------------ */

static struct mg_sched_program *find_program(struct mg_sched *s, const char *name)
{
    for (uint32_t i = 0; i < s->programs.n; i++)
        if (!strcmp(s->programs.at[i].name, name)) return &s->programs.at[i];
    return NULL;
}

/* NULL: it is a guest now, else why it is not. A name that guests have already takes in another process of theirs. */
static const char *adopt(struct mg_sched *s, uint32_t pid, double share, const char *name)
{
    char dir[4096] = "";
    struct mg_sched_program *p = find_program(s, name);
    if (mg_sched_knows(s, pid)) return "is scheduled already";
    if (p && !p->adopted) return "cannot be adopted by this name: a program of the scheduler's own has it";
    if (p && p->members.n && p->share != share) return "cannot be adopted by this name: another share goes with it";
    struct mg_control_page *page = mg_sched_page((long)pid, dir, sizeof dir);
    if (!page) return "cannot be adopted: it has made no CUDA call under margay";
    const char *why = NULL;
    bool fresh = !p;
    if (page->pid != pid) why = "cannot be adopted: it launches nothing itself"; /* a child with its parent's page */
    if (!why && fresh) p = mg_sched_add(s, name, dir, share), p->adopted = true;
    if (!why && !mg_sched_member_add(s, p, pid, page)) {
        why = p->members.n < MG_SCHED_MEMBERS ? "cannot be adopted: another scheduler has it"
                                              : "cannot be adopted: the program has too many processes";
        if (fresh) mg_sched_forget_last(s);
    }
    if (!why) p->share = share, mg_sched_counts_add(p, dir);
    if (why) mg_sched_page_free(page);
    return why;
}

static void serve(struct mg_sched *s, int fd)
{
    char request[256] = "", name[64] = "", answer[200];
    const char *why;
    unsigned pid = 0;
    double share = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n = poll(&p, 1, 5) > 0 ? recv(fd, request, sizeof request - 1, MSG_DONTWAIT) : -1;
    if (n < 0) return;
    request[n] = 0;
    if (sscanf(request, "adopt %u %lf %63s", &pid, &share, name) == 3 && pid && share > 0 && isfinite(share) &&
        mg_sched_is_name(name, strlen(name)))
        why = adopt(s, pid, share, name);
    else
        why = "cannot be adopted: the request makes no sense";
    if (why)
        snprintf(answer, sizeof answer, "process %u %s\n", pid, why);
    else
        snprintf(answer, sizeof answer, "ok\n");
    if (send(fd, answer, strlen(answer), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return; /* who asked has gone */
}

void mg_sched_answer(struct mg_sched *s)
{
    int fd;
    while (s->socket >= 0 && (fd = accept4(s->socket, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        serve(s, fd);
        close(fd);
    }
}

bool mg_sched_ask(const char *path, const char *request, char *answer, size_t room)
{
    struct sockaddr_un a;
    int fd = address_of(path, &a) ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : (errno = ENAMETOOLONG, -1);
    bool sent = fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof a) &&
                send(fd, request, strlen(request), MSG_NOSIGNAL) > 0;
    snprintf(answer, room, "%s: %s\n", path, strerror(errno));
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n = sent && poll(&p, 1, PATIENCE_MS) > 0 ? recv(fd, answer, room - 1, 0) : -1;
    if (sent && n <= 0)
        snprintf(answer, room, "the scheduler does not answer\n");
    else if (n > 0)
        answer[n] = 0;
    if (fd >= 0) close(fd);
    return n > 0 && !strcmp(answer, "ok\n");
}
