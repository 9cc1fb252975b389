#include "base/number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

const char *mg_number_read_u64(const char *text, uint64_t *out)
{
    char *end;
    bool hex = text[0] == '0' && (text[1] | 32) == 'x';
    if (!is_digit(*text)) return NULL;
    errno = 0;
    unsigned long long v = strtoull(text, &end, hex ? 16 : 10);
    if (errno || (hex && end < text + 3)) return NULL;
    *out = v;
    return end;
}

static locale_t plain;

static void make_plain(void)
{
    plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
}

double mg_number_plain(const char *text, char **end)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return plain ? strtod_l(text, end, plain) : strtod(text, end);
}

const char *mg_number_read_f64(const char *text, double *out)
{
    char *end;
    if ((!is_digit(*text) && (*text != '.' || !is_digit(text[1]))) || (text[1] | 32) == 'x')
        return NULL; /* no sign, no word, no hexadecimal */
    double v = mg_number_plain(text, &end);
    if (!isfinite(v)) return NULL;
    *out = v;
    return end;
}

bool mg_number_u64(const char *text, bool units, uint64_t least, uint64_t most, uint64_t *out)
{
    uint64_t v;
    const char *end = mg_number_read_u64(text, &v);
    if (!end) return false;
    if (units && *end && !end[1]) {
        static const char letters[] = "kmgt";
        const char *at = strchr(letters, *end | 32);
        unsigned shift = at ? 10 * (unsigned)(at - letters + 1) : 64;
        if (shift == 64 || v > UINT64_MAX >> shift) return false;
        v <<= shift;
        end++;
    }
    if (*end || v < least || v > most) return false;
    *out = v;
    return true;
}

bool mg_number_f64(const char *text, double least, double most, double *out)
{
    double v;
    const char *end = mg_number_read_f64(text, &v);
    if (!end || *end || !(v >= least && v <= most)) return false;
    *out = v;
    return true;
}

void mg_number_print_u64(uint64_t least, uint64_t most, struct mg_buf *out)
{
    mg_buf_adds(out, "a whole number");
    if (most != UINT64_MAX)
        mg_buf_printf(out, " from %llu to %llu", (unsigned long long)least, (unsigned long long)most);
    else if (least)
        mg_buf_printf(out, " from %llu on", (unsigned long long)least);
}

void mg_number_print_f64(double least, double most, struct mg_buf *out)
{
    mg_buf_printf(out, "a number from %.15g to %.15g", least, most);
}
