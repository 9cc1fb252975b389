/* Binary search in what is sorted. */
#ifndef MG_BASE_SEARCH_H
#define MG_BASE_SEARCH_H

/* ix becomes the number of the first of n items for which `before`, an expression about item ix, is false; n: there is
 * none. The items for which it is true come first. */
#define MG_FIND_FIRST(ix, n, before)                                                                                   \
    do {                                                                                                               \
        __typeof__(ix) from_ = 0, end_ = (n);                                                                          \
        while (from_ < end_) {                                                                                         \
            (ix) = from_ + (end_ - from_) / 2;                                                                         \
            if (before)                                                                                                \
                from_ = (ix) + 1;                                                                                      \
            else                                                                                                       \
                end_ = (ix);                                                                                           \
        }                                                                                                              \
        (ix) = from_;                                                                                                  \
    } while (0)

#endif
