/* JSON text read back: values, 64 bits, escapes, and texts that are none. */
#include "base/json_read.h"

#include "base/json.h"
#include "test.h"

static const struct mg_jval *parse(struct mg_arena *a, const char *text)
{
    return mg_jval_parse(a, text, strlen(text));
}

MG_TEST(json_read_values)
{
    struct mg_arena a = MG_ARENA_INIT;
    const struct mg_jval *v = parse(
        &a,
        " {\"n\": 18446744073709551615, \"f\": -2.5e3, \"t\": \"x\\n\\u00e9\\ud83d\\ude00\", \"l\": [1, [], {}], \"y\": true, \"z\": null} ");
    MG_CHECK(v && v->kind == MG_JVAL_OBJECT);
    MG_CHECK_EQ(v->n, 6);
    MG_CHECK(mg_jval_u64(v, "n") == UINT64_MAX);
    MG_CHECK(mg_jval_f64(v, "f") == -2500);
    MG_CHECK_STR(mg_jval_text(v, "t"), "x\n\xc3\xa9\xf0\x9f\x98\x80");
    MG_CHECK_EQ(mg_jval_get(v, "l")->n, 3);
    MG_CHECK(mg_jval_yes(v, "y") && !mg_jval_yes(v, "z") && !mg_jval_get(v, "absent") && !mg_jval_text(v, "n"));
    MG_CHECK_EQ(mg_jval_first(mg_jval_get(v, "l"))->u, 1);
    v = parse(&a, "18446744073709551616"); /* one more than 64 bits hold */
    MG_CHECK(v && v->kind == MG_JVAL_F64 && v->f == 18446744073709551616.0);
    mg_arena_release(&a);
}

MG_TEST(json_read_refuses)
{
    static const char *const bad[] = {"",    "{",     "[1,]",       "{\"a\" 1}",  "{a:1}",  "nul",
                                      "+1",  "1e",    "\"x",        "\"\\x\"",    "\"\n\"", "[1] 2",
                                      "--1", "1.2.3", "{\"a\":1,}", "\"\\u12g4\""};
    struct mg_arena a = MG_ARENA_INIT;
    struct mg_buf deep = MG_BUF_INIT;
    for (size_t i = 0; i < MG_COUNT_OF(bad); i++)
        if (parse(&a, bad[i])) mg_test_fail(__FILE__, __LINE__, "read as JSON: %s", bad[i]);
    for (int i = 0; i < 100000; i++) mg_buf_addc(&deep, '[');
    MG_CHECK(!parse(&a, deep.at));
    mg_buf_release(&deep);
    mg_arena_release(&a);
}

MG_TEST(json_read_what_json_writes)
{
    struct mg_arena a = MG_ARENA_INIT;
    struct mg_buf text = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &text, 1);
    mg_json_obj(&j);
    mg_json_key_str(&j, "s", "tab\t quote\" back\\ \x01 \xff");
    mg_json_key_u64(&j, "u", UINT64_MAX - 1);
    mg_json_key(&j, "f");
    mg_json_f64(&j, 0.1);
    mg_json_end(&j, '}');
    const struct mg_jval *v = mg_jval_parse(&a, text.at, text.n);
    MG_CHECK(v && mg_jval_u64(v, "u") == UINT64_MAX - 1 && mg_jval_f64(v, "f") == 0.1);
    MG_CHECK_STR(mg_jval_text(v, "s"), "tab\t quote\" back\\ \x01 \xef\xbf\xbd");
    mg_buf_release(&text);
    mg_arena_release(&a);
}
