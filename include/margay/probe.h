/* Probes written in C, for `margay run --probe FILE.c` (docs/probe-language.md). The common subset of C17
 * and C++: clang takes a probe as C, NVRTC as C++, and both give the same probe.
 *
 *   #include <margay/probe.h>
 *
 *   MG_MAP(odd, "[kernel, line, $0] = count()");
 *
 *   MG_PROBE(on_load, "ld.global, st.global line=10-20 /lanes < 32/")
 *   {
 *       if (mg_addr() & 3) mg_update1(odd, 1, mg_addr() & 3);
 *   }
 *
 * A probe's code is put into the kernel at its sites. It may call the functions below and inline functions
 * of its own, has no pointers and no memory but its maps, and its loops end: constant ones that the
 * compiler unrolls or whose rounds are a constant, and MG_FOR. Everything else is refused with its line. */
#ifndef MARGAY_PROBE_H
#define MARGAY_PROBE_H

#ifdef __cplusplus
#define MG_PROBE_C extern "C"
#else
#define MG_PROBE_C
#endif
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define MG_PROBE_DEVICE __device__
#else
#define MG_PROBE_DEVICE
#endif
#define MG_PROBE_FN(result) MG_PROBE_C MG_PROBE_DEVICE result

typedef long long mg_int; /* every value: 64 bits with a sign */

#ifdef __cplusplus
#define MG_PROBE_TEXT(name) MG_PROBE_C MG_PROBE_DEVICE const char name[]
#else
#define MG_PROBE_TEXT(name)                                                                                            \
    extern const char name[];                                                                                          \
    const char name[]
#endif

/* A map: keys and aggregate as in a one-liner, the value comes from mg_update. Keys may also be
 * $0, $1 ...: what mg_update1 ... hand over. Visible in the report under its name. */
#define MG_MAP(name, keys_and_aggregate) MG_PROBE_TEXT(name) = "map " keys_and_aggregate
/* A probe: where it fires, and behind it its body in braces. */
#define MG_PROBE(name, sites)                                                                                          \
    MG_PROBE_TEXT(name##_site) = "site " sites;                                                                        \
    MG_PROBE_C MG_PROBE_DEVICE void name(void)

/* Updates of a map by value x: count maps take no notice of it. */
MG_PROBE_FN(void) mg_update(const char *map, mg_int x);
MG_PROBE_FN(void) mg_update1(const char *map, mg_int x, mg_int key0);
MG_PROBE_FN(void) mg_update2(const char *map, mg_int x, mg_int key0, mg_int key1);
MG_PROBE_FN(void) mg_update3(const char *map, mg_int x, mg_int key0, mg_int key1, mg_int key2);

/* Values, as in a one-liner. */
MG_PROBE_FN(mg_int) mg_line(void);
MG_PROBE_FN(mg_int) mg_ptx(void);
MG_PROBE_FN(mg_int) mg_block(void);
MG_PROBE_FN(mg_int) mg_to(void);
MG_PROBE_FN(mg_int) mg_width(void);
MG_PROBE_FN(mg_int) mg_addr(void);
MG_PROBE_FN(mg_int) mg_alloc(void);
MG_PROBE_FN(mg_int) mg_offset(void);
MG_PROBE_FN(mg_int) mg_value(void);
MG_PROBE_FN(mg_int) mg_bits(void);
MG_PROBE_FN(mg_int) mg_nan(void);
MG_PROBE_FN(mg_int) mg_old(void);
MG_PROBE_FN(mg_int) mg_new(void);
MG_PROBE_FN(mg_int) mg_guard(void);
MG_PROBE_FN(mg_int) mg_active(void);
MG_PROBE_FN(mg_int) mg_lanes(void);
MG_PROBE_FN(mg_int) mg_leader(void);
MG_PROBE_FN(mg_int) mg_lane(void);
MG_PROBE_FN(mg_int) mg_warp(void);
MG_PROBE_FN(mg_int) mg_tid(void);
MG_PROBE_FN(mg_int) mg_cta(void);
MG_PROBE_FN(mg_int) mg_sm(void);
MG_PROBE_FN(mg_int) mg_clock(void);
MG_PROBE_FN(mg_int) mg_time(void);
MG_PROBE_FN(mg_int) mg_launch(void);
MG_PROBE_FN(mg_int) mg_tid_x(void);
MG_PROBE_FN(mg_int) mg_tid_y(void);
MG_PROBE_FN(mg_int) mg_tid_z(void);
MG_PROBE_FN(mg_int) mg_ntid_x(void);
MG_PROBE_FN(mg_int) mg_ntid_y(void);
MG_PROBE_FN(mg_int) mg_ntid_z(void);
MG_PROBE_FN(mg_int) mg_ctaid_x(void);
MG_PROBE_FN(mg_int) mg_ctaid_y(void);
MG_PROBE_FN(mg_int) mg_ctaid_z(void);
MG_PROBE_FN(mg_int) mg_nctaid_x(void);
MG_PROBE_FN(mg_int) mg_nctaid_y(void);
MG_PROBE_FN(mg_int) mg_nctaid_z(void);
MG_PROBE_FN(mg_int) mg_arg(mg_int ix); /* argument of the kernel; ix: a constant */

/* Sixteen variables of the thread, shared by all probes; 0 as a function is entered. n: a constant. */
MG_PROBE_FN(mg_int) mg_var(mg_int n);
MG_PROBE_FN(void) mg_set_var(mg_int n, mg_int x);

/* Events: MG_EVENT(wait) and then mg_event_begin(wait), mg_event_end(wait): docs/tools/events.md. */
#define MG_EVENT(name) MG_PROBE_TEXT(name) = "event"
MG_PROBE_FN(void) mg_event_begin(const char *event);
MG_PROBE_FN(void) mg_event_end(const char *event);

/* A record for the host while the kernel runs: a line of DIR/records.PID.csv. */
MG_PROBE_FN(void) mg_emit1(mg_int a);
MG_PROBE_FN(void) mg_emit2(mg_int a, mg_int b);
MG_PROBE_FN(void) mg_emit3(mg_int a, mg_int b, mg_int c);
MG_PROBE_FN(void) mg_emit4(mg_int a, mg_int b, mg_int c, mg_int d);

/* The instruction is not executed by this lane; what it would have loaded is 0. */
MG_PROBE_FN(void) mg_skip(void);

/* i < most, for loops; most: a constant up to 4096. `break` leaves such a loop early. */
MG_PROBE_FN(mg_int) mg_below(mg_int i, mg_int most);
#define MG_FOR(i, most) for (mg_int i = 0; mg_below(i, most); i++)

#endif
