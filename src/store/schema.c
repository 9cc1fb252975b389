/* The tables of a profile database, version 2. docs/format-profile.md explains every column. */
#include "store/priv.h"

const char mg_store_schema[] =
    "CREATE TABLE process(pid INT, ppid INT, rank INT, exe TEXT, argv BLOB, device_kind TEXT, device_name TEXT,"
    " sms INT, sm INT, properties TEXT, tools TEXT, start_unix_ns INT, exit INT, closed INT NOT NULL DEFAULT 0, run INT);"
    "CREATE TABLE kernel(id INTEGER PRIMARY KEY, name TEXT NOT NULL, demangled TEXT, module TEXT NOT NULL,"
    " regs_native INT, regs_instrumented INT, regs_estimated INT NOT NULL, has_sites INT NOT NULL);"
    "CREATE TABLE block(kernel INT NOT NULL, id INT NOT NULL, function TEXT, label TEXT, ptx_line INT, file TEXT,"
    " line INT, n_insts INT NOT NULL, succs TEXT, ops TEXT, PRIMARY KEY(kernel, id)) WITHOUT ROWID;"
    "CREATE TABLE launch(id INTEGER PRIMARY KEY, kernel INT NOT NULL, grid_x INT, grid_y INT, grid_z INT,"
    " block_x INT, block_y INT, block_z INT, cluster_x INT, cluster_y INT, cluster_z INT, static_shared INT,"
    " dyn_shared INT, device INT, stream INT, ctx INT, graph INT, ran INT NOT NULL, reason TEXT, cooperative INT,"
    " args BLOB, complete INT NOT NULL DEFAULT 0, why TEXT, start_ns INT, time_ns INT, replays INT NOT NULL DEFAULT 1,"
    " threads BLOB, warps BLOB, schedule_dependent INT);"
    "CREATE TABLE unknown(what TEXT, n INT NOT NULL, reason TEXT);"
    "CREATE TABLE tool(tool TEXT NOT NULL, key TEXT NOT NULL, json TEXT NOT NULL, PRIMARY KEY(tool, key)) WITHOUT ROWID;"
    "CREATE TABLE module(id TEXT PRIMARY KEY, bytes INT NOT NULL, ptx_zstd BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE run(pid INT PRIMARY KEY, argv BLOB, exit INT, id INT);";
