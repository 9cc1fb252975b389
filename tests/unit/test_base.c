/* base: arenas, interning, maps, hashes, JSON. */
#include "test.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/map.h"
#include "base/names.h"
#include "base/option.h"
#include "base/sort.h"

MG_TEST(arena_rewinds_to_its_mark)
{
    struct mg_arena a = MG_ARENA_INIT;
    char *x = mg_arena_strndup(&a, "abc", 3);
    struct mg_arena_mark m = mg_arena_mark(&a);
    for (int i = 0; i < 1000; i++) mg_arena_alloc(&a, 1000);
    mg_arena_rewind(&a, m);
    char *y = mg_arena_alloc(&a, 1);
    MG_CHECK(y == x + 16);
    MG_CHECK_STR(x, "abc");
    mg_arena_release(&a);
}

MG_TEST(intern_gives_equal_ids_to_equal_text)
{
    struct mg_intern t;
    mg_intern_init(&t);
    char text[16];
    for (int i = 0; i < 5000; i++) MG_CHECK_EQ(mg_intern_add(&t, text, (size_t)sprintf(text, "r%d", i)), i + 1);
    for (int i = 0; i < 5000; i++) MG_CHECK_EQ(mg_intern_find(&t, text, (size_t)sprintf(text, "r%d", i)), i + 1);
    MG_CHECK_EQ(mg_intern_adds(&t, ""), 0);
    MG_CHECK_EQ(mg_intern_find(&t, "absent", 6), 0);
    MG_CHECK_STR(mg_intern_text(&t, 17), "r16");
    mg_intern_release(&t);
}

MG_TEST(map_keeps_what_was_set_across_deletions)
{
    struct mg_map m = MG_MAP_INIT;
    uint64_t v = 0;
    for (uint64_t i = 0; i < 3000; i++) mg_map_set(&m, i * 7, i);
    for (uint64_t i = 0; i < 3000; i += 2) MG_CHECK(mg_map_del(&m, i * 7));
    for (uint64_t i = 0; i < 3000; i++) {
        MG_CHECK_EQ(mg_map_get(&m, i * 7, &v), i % 2);
        if (i % 2) MG_CHECK_EQ(v, i);
    }
    MG_CHECK_EQ(m.n, 1500);
    mg_map_release(&m);
}

MG_TEST(keys_are_sorted_and_equal_ones_keep_their_order)
{
    static const uint64_t masks[] = {UINT64_MAX, 0xff, 3, 0xff000000000000f0, 0};
    static struct mg_sort_key at[4000], room[4000];
    uint64_t seed = 1;
    for (uint32_t n = 0; n <= MG_COUNT_OF(at); n += n < 40 ? 1 : 1320)
        for (size_t m = 0; m < MG_COUNT_OF(masks); m++) {
            uint64_t sum = 0;
            for (uint32_t i = 0; i < n; i++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                at[i] = (struct mg_sort_key){(seed ^ seed >> 29) & masks[m], i};
                sum += at[i].key * (2 * i + 1); /* which key has which index */
            }
            mg_sort_keys(at, room, n);
            for (uint32_t i = 0; i < n; i++) sum -= at[i].key * (2 * at[i].ix + 1);
            MG_CHECK(sum == 0);
            for (uint32_t i = 1; i < n; i++)
                MG_CHECK(at[i - 1].key < at[i].key || (at[i - 1].key == at[i].key && at[i - 1].ix < at[i].ix));
        }
}

MG_TEST(text_id_is_sha256_without_trailing_nuls)
{
    char id[33];
    mg_text_id("abc\0\0", 5, id);
    MG_CHECK_STR(id, "ba7816bf8f01cfea414140de5dae2223");
    mg_text_id("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, id);
    MG_CHECK_STR(id, "248d6a61d20638b8e5c026930c3e6039");
}

MG_TEST(json_escapes_and_separates)
{
    struct mg_buf b = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &b, 0);
    mg_json_obj(&j);
    mg_json_key(&j, "a\"\n");
    mg_json_arr(&j);
    mg_json_u64(&j, UINT64_MAX);
    mg_json_f64(&j, 0.1);
    mg_json_f64(&j, 2);
    mg_json_str(&j, "\xff\xc3\xa9");
    mg_json_null(&j);
    mg_json_end(&j, ']');
    mg_json_key(&j, "b");
    mg_json_obj(&j);
    mg_json_end(&j, '}');
    mg_json_end(&j, '}');
    MG_CHECK_STR(b.at, "{\"a\\\"\\n\":[18446744073709551615,0.1,2.0,\"\\ufffd\xc3\xa9\",null],\"b\":{}}");
    mg_buf_release(&b);
}

MG_TEST(names_are_kept_once_and_whole)
{
    char list[24] = "";
    mg_names_add(list, sizeof list, "vadd");
    mg_names_add(list, sizeof list, "add"); /* is part of the first */
    mg_names_add(list, sizeof list, "vadd");
    MG_CHECK_STR(list, "vadd, add");
    mg_names_add(list, sizeof list, "wgmma");
    MG_CHECK_STR(list, "vadd, add, wgmma");
    mg_names_add(list, sizeof list, "cp.async");
    MG_CHECK_STR(list, "vadd, add, wgmma, ...");
    mg_names_add(list, sizeof list, "x");
    MG_CHECK_STR(list, "vadd, add, wgmma, ...");
    MG_CHECK(mg_names_have("a; b of c", ';', "b of c") && !mg_names_have("a; b of c", ';', "b"));
}

MG_TEST(options_are_found_by_whole_keys)
{
    static const char text[] = "timeline,no_runtime=off,runtime=on,runtime=off";
    size_t n = 0;
    const char *v = mg_option_value(text, strlen(text), "runtime", &n);
    MG_CHECK(v == text + 32 && n == 2);
    v = mg_option_value("weights=a b,x=1", 15, "weights", &n);
    MG_CHECK(v && n == 3 && !strncmp(v, "a b", n));
    MG_CHECK(!mg_option_value("weights", 7, "weights", &n) && !mg_option_value("", 0, "weights", &n));
    MG_CHECK(!mg_option_value("a,weights=b", 5, "weights", &n)); /* beyond the bytes */
}
