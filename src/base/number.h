/* Numbers as people write them, for options of commands, of tools and of --launches: one reader, so that
 * all of them refuse the same: no digits, signs, blanks, more than the range, NaN, infinity. Whole
 * numbers are decimal, or hexadecimal behind 0x; real ones always have a point, whatever the locale of
 * the process is. */
#ifndef MG_BASE_NUMBER_H
#define MG_BASE_NUMBER_H

#include "base/buf.h"

/* Reads what stands at text; the end of it, or NULL: no number, or more than 64 bits or a double hold. */
const char *mg_number_read_u64(const char *text, uint64_t *out);
const char *mg_number_read_f64(const char *text, double *out);
/* As strtod, in the C locale: for text that a program wrote. */
double mg_number_plain(const char *text, char **end);

/* The whole text is one number from least to most. units: k, m, g, t may stand behind it. */
bool mg_number_u64(const char *text, bool units, uint64_t least, uint64_t most, uint64_t *out);
bool mg_number_f64(const char *text, double least, double most, double *out);

/* "a whole number from 1 to 64", "a whole number", "a number from 0 to 100": for messages. */
void mg_number_print_u64(uint64_t least, uint64_t most, struct mg_buf *out);
void mg_number_print_f64(double least, double most, struct mg_buf *out);

#endif
