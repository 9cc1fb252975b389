/* An L2 of two halves, of which little is known: what it may hold, what it holds for sure, and a best guess, each
 * computed by a machine of its own (docs/studies/cache.md has the rules):
 *
 *   one    the whole size, fully associative, LRU; a read brings its sector and the partner in 64 bytes
 *   sure   half the size in sets of 16 ways; of what lies there a read finds what its own multiprocessor has read since
 *          it was written, a write what was written
 *   guess  two halves of half the size in sets of 16 ways; multiprocessors and lines each belong to one of them */
#ifndef MG_STUDY_L2_H
#define MG_STUDY_L2_H

#include "study/reuse.h"

struct mg_l2;
struct mg_l2_request {
    uint64_t line;
    uint64_t turn;   /* never falls */
    uint32_t window; /* turns that a sector takes from one half to the other */
    uint32_t sm;
    uint8_t sectors;
    uint8_t split; /* sectors whose 64 bytes some load of the launch asks for in part */
    bool reads, writes;
};
struct mg_l2_answer {
    uint8_t first;                 /* sectors never touched before */
    uint8_t least, guess, most;    /* that hit: for all machines, for the guess, for any of them */
    uint8_t lost_least, lost_most; /* touched before, and gone for want of room */
    uint32_t alone[MG_REUSE_SECTORS], paired[MG_REUSE_SECTORS]; /* distances: sectors fetched alone, 64 bytes fetched */
};
struct mg_l2 *mg_l2_new(uint64_t bytes);
void mg_l2_free(struct mg_l2 *l);
void mg_l2_access(struct mg_l2 *l, const struct mg_l2_request *q, struct mg_l2_answer *a);
uint32_t mg_l2_lines(const struct mg_l2 *l); /* ever touched */
/* Of a mask of sectors all those that share 64 bytes with one of it. */
unsigned mg_l2_pairs(unsigned sectors);
/* 0 or 1: the half that the guess gives a line, by its number in the order of first touches, or two multiprocessors:
 * twice the number, and the next one. */
unsigned mg_l2_half(uint64_t number);

#endif
