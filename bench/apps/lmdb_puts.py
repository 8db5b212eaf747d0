#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""lmdb_puts.py DIRECTORY COUNT SYNC - that many transactions of lmdb that put one value each."""

import ctypes
import ctypes.util
import os
import sys

MDB_NOSYNC, MDB_CREATE = 0x10000, 0x40000


class Value(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_char_p)]


def check(error):
    if error:
        sys.exit(lmdb.mdb_strerror(error).decode())


lmdb = ctypes.CDLL(ctypes.util.find_library("lmdb"))
lmdb.mdb_strerror.restype = ctypes.c_char_p
directory, count, sync = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1"
os.mkdir(directory)
env, txn, dbi = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
check(lmdb.mdb_env_create(ctypes.byref(env)))
check(lmdb.mdb_env_set_mapsize(env, ctypes.c_size_t(64 << 20)))
check(lmdb.mdb_env_open(env, directory.encode(), 0 if sync else MDB_NOSYNC, 0o644))
for number in range(count):
    check(lmdb.mdb_txn_begin(env, None, 0, ctypes.byref(txn)))
    if number == 0:
        check(lmdb.mdb_dbi_open(txn, None, MDB_CREATE, ctypes.byref(dbi)))
    key, text = b"key %d" % number, b"a value with the number %d" % number
    check(lmdb.mdb_put(txn, dbi, ctypes.byref(Value(len(key), key)),
                       ctypes.byref(Value(len(text), text)), 0))
    check(lmdb.mdb_txn_commit(txn))
lmdb.mdb_env_close(env)
