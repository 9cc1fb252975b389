/* The scheduler of `margay sched`: programs, their processes' gates, and who has the device.
 *
 *   member.c   processes: their control pages, found in a profile directory or adopted; what they have used
 *   turns.c    who may launch: credits, turns, refills
 *   policy.c   how much credit each program gets per period (include/margay/policy.h)
 *   counts.c   exact instruction counts, from the growing profiles
 *   requests.c `margay ctl PID adopt`, over a socket
 *   history.c  shares over time: JSON; picture.c: SVG
 *
 * One thread. It never waits for a program: gates are words in shared memory. */
#ifndef MG_SCHED_SCHED_H
#define MG_SCHED_SCHED_H

#include "base/diag.h"
#include "base/processor.h"
#include "base/vec.h"
#include "margay/control.h"
#include "margay/policy.h"

#define MG_SCHED_PERIOD_NS 10000000u
#define MG_SCHED_ADJUST_NS 50000000u
enum { MG_SCHED_MEMBERS = 64 }; /* processes of a program */

struct mg_sched_member { /* a process of a program */
    uint32_t pid;
    struct mg_control_page *page;
    uint32_t news; /* of its gate, before it was looked at */
    uint32_t looks;
    bool watched;                                         /* the tool of --attach is on */
    uint64_t looked_ns;                                   /* when a thread in front of the gate was last seen alive */
    uint64_t device_ns, passed, ended, waited_ns, forced; /* as last read */
};
struct mg_sched_time { /* in which a process of a program was scheduled */
    uint32_t pid;
    uint64_t from_ns, until_ns;
};
struct mg_sched_use {
    uint64_t device_ns, launches, longest_ns, waited_ns, forced, instructions;
};
struct mg_sched_program {
    char *name, *dir; /* dir: its profile; NULL: not known */
    double share;
    int32_t priority;
    int pid;    /* of its launcher; 0: adopted, or it has ended */
    int status; /* how the launcher ended; -1: it has not */
    bool adopted;
    MG_VEC(struct mg_sched_member) members;
    MG_VEC(struct mg_sched_time) times;
    struct mg_sched_use use; /* so far, ended processes included */
    bool counted;            /* some launch had an instruction count */
    uint64_t flying;         /* launches in flight */
    bool waits, moved;  /* threads stand in front of its gate; it has launched or ended something since the last look */
    uint64_t wanted_ns; /* when it last had launches in flight or waited */
    uint64_t moved_ns;
    uint64_t still_ns;         /* since when it is watched whether anything moves; 0: it is not */
    struct mg_processor still; /* what its processes had got by then */
    uint64_t idle_ns;          /* since when it has neither; 0: it has */
    double credit_ns;
    bool yielded;         /* it lost its last turn by idling */
    uint64_t stalled_ns;  /* when it lost it since nothing moved; 0: it did not, or something has moved since */
    uint64_t over_use_ns; /* device time when it was last asked who exceeds its share */
    bool watched;         /* the tool of --attach is to be on */
    uint64_t lapses;      /* times that a process took us for dead: its launches passed unseen until now */
    uint64_t attached;    /* how often it came on */
    char *attach_error;   /* why a process would not take it; NULL: none has said so */
    struct mg_sched_counts *counts; /* of each directory that its processes write into */
};
struct mg_sched_sample {
    uint64_t device_ns, instructions;
};
struct mg_sched {
    MG_VEC(struct mg_sched_program) programs;
    const struct mg_policy *policy;
    MG_VEC(struct mg_policy_program) views; /* of the programs, same order */
    uint64_t begin_ns;                      /* when the first gate was seen; 0: not yet */
    uint64_t now_ns;                        /* of this look */
    uint64_t adjusted_ns, scanned_ns, polled_ns;
    int holder, last;   /* programs; -1: nobody */
    bool closing, solo; /* the holder's turn is over, but not its work; nobody else wants the device */
    uint64_t closing_ns;
    double capacity;
    uint64_t turns; /* given */
    uint64_t contended_ns, contended_from_ns;
    int64_t contended_use_ns;
    uint64_t over_from_ns;            /* when it was last asked who exceeds its share */
    const char *attach, *attach_name; /* tool for the one that exceeds its share, or NULL: as -t takes it; its name */
    int socket;                       /* of requests; -1: none */
    char *socket_path;
    MG_VEC(uint64_t) sample_ns;
    MG_VEC(struct mg_sched_sample)
    samples; /* n programs for each time; programs that came later have fewer: history.c */
    MG_VEC(uint32_t) sample_programs;
};

bool mg_sched_is_name(const char *text, size_t n); /* of a program */
void mg_sched_init(struct mg_sched *s, const struct mg_policy *policy);
void mg_sched_let_go(struct mg_sched *s); /* opens all gates: nobody is scheduled any more */
void mg_sched_release(struct mg_sched *s);
/* The program that was added last, which has no process. */
void mg_sched_forget_last(struct mg_sched *s);
struct mg_sched_program *mg_sched_add(struct mg_sched *s, const char *name, const char *dir, double share);
/* Looks once, gives turns, and says how long nothing needs to be looked at. */
uint64_t mg_sched_step(struct mg_sched *s, uint64_t now_ns);
/* Until a process has news, at most so long. */
void mg_sched_sleep(struct mg_sched *s, uint64_t ns);

/* ---- member.c ---- */
/* The control page of a process; NULL: it has none that can be mapped. dir: its profile, or "". */
struct mg_control_page *mg_sched_page(long pid, char *dir, size_t room);
void mg_sched_page_free(struct mg_control_page *page);
void mg_sched_scan(struct mg_sched *s, uint64_t now_ns); /* processes that have come or gone */
bool mg_sched_knows(const struct mg_sched *s, uint32_t pid);
bool mg_sched_member_add(struct mg_sched *s, struct mg_sched_program *p, uint32_t pid, struct mg_control_page *page);
void mg_sched_read(struct mg_sched_program *p, uint64_t now_ns);
/* The gate is opened, the tool of --attach is off again, and the page let go. */
void mg_sched_leave(const struct mg_sched *s, struct mg_sched_program *p, struct mg_sched_member *m);
void mg_sched_turn(struct mg_sched_program *p, enum mg_gate_turn turn, double credit_ns);
void mg_sched_hear(struct mg_sched_program *p, enum mg_gate_listens what); /* what its processes tell, once */

/* Switches the tool of --attach; false: not now. */
bool mg_sched_attach(const struct mg_sched *s, struct mg_sched_member *m, bool on);

/* ---- turns.c ---- */
uint64_t mg_sched_turns(struct mg_sched *s, uint64_t now_ns);

/* ---- policy.c ---- */
/* credit, none, or a shared object's path. */
const struct mg_policy *mg_sched_policy(const char *name, struct mg_diag *d);
extern const struct mg_policy mg_policy_credit, mg_policy_none;
void mg_sched_adjust(struct mg_sched *s, uint64_t now_ns);

/* ---- counts.c ---- */
void mg_sched_count(struct mg_sched_program *p, bool all); /* what has ended since; all: the program has, too */
/* Of a profile, too; nothing happens where that is known. */
void mg_sched_counts_add(struct mg_sched_program *p, const char *dir);
void mg_sched_counts_free(struct mg_sched_counts *c);

/* ---- requests.c ---- */
bool mg_sched_listen(struct mg_sched *s, const char *path, struct mg_diag *d);
void mg_sched_deafen(struct mg_sched *s);
void mg_sched_answer(struct mg_sched *s);
bool mg_sched_ask(const char *path, const char *request, char *answer, size_t room); /* the other side */

/* ---- history.c, picture.c ---- */
void mg_sched_sample(struct mg_sched *s, uint64_t now_ns);
struct mg_sched_row {
    uint64_t start_ns, length_ns;
    const struct mg_sched_sample *use; /* of each program, in it */
};
/* What was used between two samples at least step_ns apart, row by row; the caller frees *rows and *use. */
uint32_t mg_sched_rows(const struct mg_sched *s, uint64_t step_ns, struct mg_sched_row **rows,
                       struct mg_sched_sample **use);
struct mg_buf;
void mg_sched_json(const struct mg_sched *s, struct mg_buf *out);
void mg_sched_picture(const struct mg_sched *s, struct mg_buf *out);

#endif
