/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * minl2r.h - crash-consistent transactions on byte-addressable persistent memory (PM).
 *
 * A pool is one file (or device) mapped into memory. A transaction changes any set of
 * byte ranges and blocks of it; after a crash at any instant, opening the pool shows
 * all of the transaction or none of it.
 *
 *     struct minl2r_pool *pool;
 *     struct minl2r_tx *tx;
 *
 *     if (minl2r_pool_open("/mnt/pmem/counter", "counter", NULL, &pool) < 0)
 *         errx(1, "%s", minl2r_errormsg());
 *     const struct counter *c = minl2r_root(pool, sizeof(*c));
 *     uint64_t hits = c->hits + 1;
 *     minl2r_tx_begin(pool, &tx);
 *     minl2r_tx_write(tx, &c->hits, &hits, sizeof(hits));
 *     minl2r_tx_commit(tx);
 *     minl2r_pool_close(pool);
 *
 * Contract, for every call unless it says otherwise:
 *
 *   Sizes and offsets  are bytes. An offset counts from the pool's start; 0: none.
 *   Returns            0, or a negative errno; minl2r_errormsg() says what and where.
 *   Pointers into PM   are pointers to const: change them through a transaction.
 *   Isolation          is the caller's: what a running transaction reads or changes, no
 *                      other thread changes (as with libpmemobj; use your own locks).
 *   Threads            a pool may be used by many threads; a transaction by the thread
 *                      that began it (else -EPERM). One thread may have several
 *                      transactions open.
 *   Fork               a child may only close the pool; every other call is -EPERM.
 *   Space              what can fail for want of space or memory fails before commit.
 *   Poisoned pools     when the medium fails (-EIO, msync mode only) every later change
 *                      is -EIO until the pool is opened again; it is then old or new.
 *
 * "Cost" counts fences that have something to wait for: they are what a commit costs.
 * -EPERM and -EIO, as above, are not listed again as "Errors" of each call.
 *
 * Method: H. K. Lee, J. Kim, D. H. Kang, Y. I. Eom, "Minimizing consistency-control
 * overhead with rollback-recovery for storage class memory", IMCOM 2015.
 */
#ifndef MINL2R_H
#define MINL2R_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define MINL2R_MAJOR 1
#define MINL2R_MINOR 0

struct minl2r_pool;
struct minl2r_tx;

/* ---- Limits ---------------------------------------------------------------------- */

#define MINL2R_POOL_SIZE_MIN ((uint64_t)1 << 20)
#define MINL2R_POOL_SIZE_MAX ((uint64_t)1 << 46)
#define MINL2R_LAYOUT_MAX 63 /* characters of a layout name, without the final NUL */
#define MINL2R_LANES_MAX 1023
#define MINL2R_LANES_DEFAULT 32
#define MINL2R_BLOCK_SIZE_MIN 512
#define MINL2R_BLOCK_SIZE_MAX 65536
#define MINL2R_BLOCK_SIZE_DEFAULT 4096
#define MINL2R_LOG_SIZE_MIN 4096
#define MINL2R_LOG_SIZE_DEFAULT 16384

/* ---- Errors and version ---------------------------------------------------------- */

/*
 * The message of this thread's last failed call: one line, without a newline, never
 * NULL. Valid until the thread's next failing call.
 */
const char *minl2r_errormsg(void);

/*
 * NULL if a program compiled against `major`.`minor` can use this library, else the
 * reason: minl2r_check_version(MINL2R_MAJOR, MINL2R_MINOR).
 */
const char *minl2r_check_version(unsigned major, unsigned minor);

/* ---- Pools ----------------------------------------------------------------------- */

/*
 * What keeps the bytes, from the least to the most that it promises. Decided per
 * mapping; minl2r_pool_info() tells the reason.
 */
enum minl2r_medium {
    MINL2R_EMULATED = 1, /* tmpfs: survives a killed process, not a power loss */
    MINL2R_FILE = 2,     /* ordinary file: each ordering point is an msync */
    MINL2R_DAX = 3,      /* PM mapped with MAP_SYNC: cache lines are flushed */
    MINL2R_EADR = 4,     /* PM whose persistence domain includes the CPU caches */
};

/* "emulated", "file", "dax" or "eadr"; "unknown" for what is no medium. */
const char *minl2r_medium_name(enum minl2r_medium medium);

/* Thresholds of pointer logging, for minl2r_options.pointer_threshold. */
#define MINL2R_POINTER_HALF 0            /* from half of a block on: the paper's rule */
#define MINL2R_POINTER_ALWAYS 1          /* from the first byte on */
#define MINL2R_POINTER_NEVER 0xffffffffu /* data logging only */

/*
 * What is faster on this medium and machine: minl2r_pool_create() tries both, with
 * 1/16, 2/16, ... of a block changed, and keeps the size from which on pointer logging
 * takes less time. It then takes a fraction of a second longer. Half, without trying,
 * where fences are msyncs (MINL2R_FILE) and in pools below 2 MiB. minl2r_pool_info()
 * shows what came out.
 */
#define MINL2R_POINTER_AUTO 0xfffffffeu

/* What the program promises, for minl2r_options.commit. */
enum minl2r_commit {
    /*
     * It stores to PM as it likes, while no transaction changes the same bytes; but a
     * slot that it has given to minl2r_tx_write_block() it changes by transactions and
     * minl2r_store64() only, and not by minl2r_tx_write_fresh(), until its block is
     * freed.
     */
    MINL2R_COMMIT_SETTLE = 0,
    /*
     * It stores to PM only through the library, and directly to blocks that its running
     * transaction allocated and to ranges of its snapshots. Small changes commit in two
     * fences then. With MINL2R_WATCH=1 in the environment, what breaks the promise is
     * found and ends the program: see libminl2r(7).
     */
    MINL2R_COMMIT_PROVE = 1,
};

/*
 * Options of create and open. All zero means: the defaults. `require` and `commit` are
 * read by both; the rest is fixed when a pool is created, and ignored by open.
 */
struct minl2r_options {
    enum minl2r_medium require; /* refuse a lesser medium with -ENOTSUP; 0: take any */
    uint32_t block_size;        /* bytes; power of two from 512 to 65536; 0: 4096 */
    uint32_t lanes;             /* transactions that may log at once; 0: by pool size */
    uint32_t log_size;          /* bytes of log a lane has before it grows; 0: 16384 */
    uint32_t pointer_threshold; /* changed bytes of a block from which it is swapped */
    uint32_t spare_blocks;      /* blocks that tx_alloc leaves for logs and swaps, so
                                   that a full pool can be changed; 0: by pool size */
    uint32_t mode;              /* permission bits of the new file; 0: 0600 */
    enum minl2r_commit commit;  /* until the pool is closed */
    uint32_t reserved[8];       /* zero */
};

/*
 * Creates the pool file `path` of `size` bytes (rounded down to whole blocks), with its
 * space allocated, and opens it. `layout` names what the program keeps in it; opening
 * with another name fails. `options` may be NULL. A device must exist and hold nothing:
 * device DAX (/dev/dax0.0), or a block device, whose medium is MINL2R_FILE even on
 * persistent memory (/dev/pmem0), because it has no MAP_SYNC. Its size is used where
 * `size` is 0.
 *
 * The file gets its name at the end. Where files cannot be without one (the file system
 * has no O_TMPFILE, or /proc is missing) it has it from the start.
 *
 * Cost:    allocates and maps `size` bytes, and writes headers, lanes and bitmaps:
 *          three fences; with MINL2R_POINTER_AUTO thousands, for a trial.
 * Crash:   before it returns, there is no file; or where it has its name from the
 *          start, or is a device, something that cannot be opened: -EUCLEAN, or
 *          -EINVAL.
 * Errors:  -EEXIST, -EINVAL, -ENOSPC, -ENOTSUP (medium), -ENOMEM, or what the file
 *          system says; a file that this call made is removed again.
 */
int minl2r_pool_create(const char *path, const char *layout, uint64_t size,
                       const struct minl2r_options *options, struct minl2r_pool **pool);

/*
 * The same, for a pool that is no use empty: calls `fill`, which puts into it what it
 * is to begin with and returns 0 or a negative errno, before the file gets its name. It
 * may commit as many transactions as it likes, and must not close the pool.
 *
 * Cost:    as minl2r_pool_create(), and what `fill` does.
 * Crash:   before it returns, there is no file; but on a device, or where files cannot
 *          be without a name, a pool may be left as far as `fill` has got, so what says
 *          that it is complete should be committed last.
 * Errors:  those of minl2r_pool_create(), and what `fill` returns, with which the pool
 *          is gone.
 */
typedef int minl2r_fill_fn(struct minl2r_pool *pool, void *arg);
int minl2r_pool_create_filled(const char *path, const char *layout, uint64_t size,
                              const struct minl2r_options *options,
                              minl2r_fill_fn *fill, void *arg,
                              struct minl2r_pool **pool);

/*
 * Opens a pool, undoing what a crash left unfinished. `layout` may be NULL: any.
 * Nothing is written before the superblock and the logs were validated. Bitmaps and the
 * program's own data have no checksums: minl2r_pool_check() compares them. Holes that a
 * copy of the file has get their space: no later store can want it in vain.
 *
 * Cost:    one fence, plus one if something was undone.
 * Crash:   may crash at any store and be run again.
 * Errors:  -ENOENT, -EBUSY (open elsewhere), -EINVAL (no pool, or another layout),
 *          -EPROTONOSUPPORT (newer format), -EUCLEAN (damaged: the message says where),
 *          -ENOTSUP (medium), -ENOSPC (for holes), -ENOMEM.
 */
int minl2r_pool_open(const char *path, const char *layout,
                     const struct minl2r_options *options, struct minl2r_pool **pool);

/*
 * Closes the pool and frees `pool`. NULL is allowed. No other call may be running or
 * come after. In a child of fork() it gives back memory only: transactions of the
 * parent are no error, and the pool stays locked.
 *
 * Cost:    none; one fence where commits in two fences are to be settled.
 * Crash:   nothing is lost that was committed: a process may as well just end, and the
 *          next open finishes the rest.
 * Errors:  -EBUSY: a transaction is still open, and so is the pool.
 */
int minl2r_pool_close(struct minl2r_pool *pool);

/* One finding of minl2r_pool_check(): `what` names the invariant and the place. */
typedef void minl2r_check_fn(void *arg, const char *what);

/*
 * Verifies a pool file that nobody has open, without writing to it: superblock,
 * geometry, lanes, logs, bitmaps, root. Calls `found` for each problem. Unfinished
 * transactions, which the next open undoes, are not problems. Nor is a lane whose
 * settled generation lies far back: damage cannot be told from what commits leave.
 *
 * Cost:    reads lanes, live logs and bitmaps; nothing of the program's data.
 * Returns: 0 if consistent, -EUCLEAN if not, else why it could not be checked: -EBUSY
 *          (open), -ENOMEM, or as minl2r_pool_open().
 */
int minl2r_pool_check(const char *path, minl2r_check_fn *found, void *arg);

struct minl2r_recovery {
    uint64_t lanes;   /* transactions that were undone */
    uint64_t batches; /* log batches read */
    uint64_t records; /* log records undone */
    uint64_t bytes;   /* original bytes written back */
    uint64_t blocks;  /* blocks whose allocation or freeing was undone */
    uint64_t ns;      /* time that validating and undoing took */
};

struct minl2r_info {
    const char *path; /* as opened; valid until the pool is closed */
    char layout[MINL2R_LAYOUT_MAX + 1];
    uint8_t uuid[16];
    uint32_t format;
    enum minl2r_medium medium;
    const char *medium_reason; /* why this medium, in words */
    const char *flush_method;  /* "clwb", "clflushopt", "clflush", "msync", "none" */
    uint64_t pool_size;
    uint32_t block_size;
    uint32_t lanes;
    uint32_t log_size;
    uint32_t pointer_threshold; /* bytes; block_size + 1 or more: never */
    uint64_t blocks;            /* in all, without the library's own */
    uint64_t blocks_free;       /* spare blocks included */
    uint64_t blocks_spare;
    struct minl2r_recovery recovery; /* what the last open undid */
};

/*
 * What the pool is, and how full: `blocks_free` is exact when no other thread is inside
 * a call.
 *
 * Cost:    none.
 * Errors:  -EPERM (after fork).
 */
int minl2r_pool_info(struct minl2r_pool *pool, struct minl2r_info *info);

/*
 * The root object: the entry to all that a program keeps in the pool. The first call
 * makes it, zeroed, in one transaction; later calls must name the same size. Aligned to
 * the block size. Any thread may call it at any time.
 *
 * Cost:    a commit the first time: three fences, or two with MINL2R_COMMIT_PROVE. Then
 *          none.
 * Crash:   it is there, all zeros, or not made yet.
 * Returns: NULL on error, with errno and the message set: EINVAL (no bytes, or another
 *          size than it has), ENOSPC, ENOMEM, EUCLEAN (the root block is damaged), EIO
 *          (poisoned, where it is to be made), EPERM (after fork).
 */
const void *minl2r_root(struct minl2r_pool *pool, uint64_t size);

/* The address of `offset`, or NULL for 0 and for what lies outside the data area. */
const void *minl2r_at(const struct minl2r_pool *pool, uint64_t offset);

/* The offset of an address, or 0 for NULL and for what lies outside the data area. */
uint64_t minl2r_offset(const struct minl2r_pool *pool, const void *ptr);

/* ---- Transactions: begin and end ------------------------------------------------- */

/*
 * Begins a transaction.
 *
 * Cost:    none: no lane either, and no heap allocation in steady state.
 * Errors:  -ENOMEM, -EIO (poisoned), -EPERM (after fork).
 */
int minl2r_tx_begin(struct minl2r_pool *pool, struct minl2r_tx **tx);

/*
 * Commits every change of `tx` and ends it, whatever it returns (but for -EPERM:
 * another thread's transaction, or a forked child).
 *
 * Cost:    one flushed or streamed line per changed line, and fences by what changes:
 *
 *          nothing is queued                                                  none
 *          fresh bytes only; or values that are there already, but that
 *              whoever stored them may not have flushed                       1
 *          one aligned word of 1, 2, 4 or 8 bytes                             1
 *          such a word, with fresh bytes outside its line, or that a commit
 *              of slots or under PROVE changed last                           2
 *          slots: by pointer logging up to 256, and holes filled; 320 in all
 *              with the default log size; and blocks allocated besides        2
 *          with MINL2R_COMMIT_PROVE, up to 4,000 bytes in one range, or 131
 *              words in as many, with slots and allocations or without        2
 *          any number of ranges and blocks                                    3
 *
 *          Of a transaction with snapshots, two come here and one with each of these.
 *          May wait for a lane while as many transactions commit as the pool has lanes.
 * Crash:   during the call: all old or all new after recovery; after it: all new.
 * Errors:  -EIO if the medium failed (msync mode): the pool is poisoned.
 */
int minl2r_tx_commit(struct minl2r_tx *tx);

/*
 * Ends `tx` without its changes. Never needs memory or space.
 *
 * Cost:    none; one fence if whole blocks or own blocks were stored already, two after
 *          a snapshot.
 * Crash:   old.
 * Errors:  -EIO as for commit.
 */
int minl2r_tx_abort(struct minl2r_tx *tx);

/* ---- Transactions: queued changes ------------------------------------------------ */

/*
 * Queues bytes for `dst`. `src` is read here, once, and may be in PM or change
 * afterwards. A later write wins over an earlier one where they overlap.
 *
 * Cost:    none until commit.
 * Crash:   all or nothing at commit.
 * Errors:  -EINVAL (outside the data area; or `dst` holds a slot that this transaction
 *          writes by minl2r_tx_write_block), -ENOSPC (log), -ENOMEM: then nothing of
 *          this call is queued, what was queued before stays, and `tx` can go on.
 */
int minl2r_tx_write(struct minl2r_tx *tx, const void *dst, const void *src,
                    size_t size);

/* As minl2r_tx_write(), of zeros. */
int minl2r_tx_zero(struct minl2r_tx *tx, const void *dst, size_t size);

/*
 * As minl2r_tx_write(), from PM: `src` is read as this transaction sees it. The ranges
 * may overlap. -EINVAL also for a `src` outside the data area.
 */
int minl2r_tx_copy(struct minl2r_tx *tx, const void *dst, const void *src, size_t size);

/*
 * A working copy in DRAM of `size` bytes at `pm`, as this transaction sees them,
 * aligned to 16 bytes. Change it freely until commit or abort; what then differs from
 * PM is the change. Later writes and reads of this transaction inside the range act on
 * the copy. A range inside an earlier edit answers with that copy; one that overlaps in
 * part is -EINVAL.
 *
 * `copy` is the address of a pointer of any type, which is set to the copy; it is `void
 * *`, and not `void **`, so that no cast is needed:
 *
 *     struct list *list;
 *     result = minl2r_tx_edit(tx, in_pm, sizeof(*list), &list);
 *
 * Cost:    none until commit, which logs only the words that differ.
 * Crash:   all or nothing at commit.
 * Errors:  as minl2r_tx_write().
 */
int minl2r_tx_edit(struct minl2r_tx *tx, const void *pm, size_t size, void *copy);

/*
 * Queues bytes that are never logged: they are durable before anything logged changes,
 * and may be there after a crash although the transaction is not. For bytes that
 * nothing reachable refers to yet (space past the end of a file), and for words whose
 * early arrival is harmless (a time stamp). Overlap with other writes of the same
 * transaction: undefined.
 *
 * Cost:    none until commit, which flushes or streams each line.
 * Crash:   once commit has begun any part of them may be there; when it returns, all.
 * Errors:  -EINVAL (outside the data area), -ENOMEM.
 */
int minl2r_tx_write_fresh(struct minl2r_tx *tx, const void *dst, const void *src,
                          size_t size);

/*
 * Queues `size` bytes at `offset` of the block that `*slot` names. A slot is an 8-byte
 * aligned block pointer in PM, holding the offset of a block; 0 is a hole and reads as
 * zeros: the write then allocates a block, zeroed around the bytes.
 *
 * Decides at commit, from all that this transaction writes in the block: below the
 * pool's pointer threshold the original bytes are logged and the block changed in place
 * (data logging); from it on a fresh block takes the old one's place by one 8-byte
 * store, and the old one, freed by the commit, is the log (pointer logging). Without a
 * free block: data logging. So after commit *slot may have another value: do not keep
 * the old one.
 *
 * A slot may lie in a block that this transaction allocated. A block that itself holds
 * a slot written by this transaction is changed in place.
 *
 * Cost:    none until commit, but large parts of a fresh block may be written at once,
 *          past the cache. A fence where the only free blocks are those that the last
 *          commits freed.
 * Crash:   all or nothing at commit.
 * Errors:  -EINVAL (`offset + size` past the block; the slot is misaligned, not in an
 *          allocated block, or queued by minl2r_tx_write() in the same transaction),
 *          -EUCLEAN (the slot names no allocated block, or one that another slot
 *          written in this transaction names), -ENOSPC, -ENOMEM; as for
 *          minl2r_tx_write().
 */
int minl2r_tx_write_block(struct minl2r_tx *tx, const uint64_t *slot, uint32_t offset,
                          const void *src, uint32_t size);

/*
 * Reads `size` bytes at `src` in PM as this transaction sees them: its own queued
 * writes included, fresh bytes excluded.
 *
 * Cost:    none.
 * Errors:  -EINVAL (outside the data area).
 */
int minl2r_tx_read(struct minl2r_tx *tx, void *dst, const void *src, size_t size);

/* ---- Transactions: blocks -------------------------------------------------------- */

/*
 * Allocates `blocks` contiguous blocks: at `*offset`, with whatever content they last
 * had. `writable` is the address of a pointer of any type, as in minl2r_tx_edit(),
 * which is set to their memory. Either may be NULL. Store to the memory directly;
 * commit makes it durable before anything that the transaction logs. At most 8 * block
 * size - 1 blocks.
 *
 * Cost:    none until commit, which flushes every line of it; but a fence where the
 *          only free blocks are those that the last commits freed.
 * Crash:   allocated if and only if the transaction is committed.
 * Errors:  -ENOSPC (spare blocks are left alone), -EINVAL, -ENOMEM.
 */
int minl2r_tx_alloc(struct minl2r_tx *tx, uint64_t blocks, uint64_t *offset,
                    void *writable);

/*
 * Frees `blocks` blocks at `offset`, once committed; until then they keep their
 * content.
 *
 * Cost:    none until commit, which then takes three fences.
 * Crash:   freed if and only if the transaction is committed.
 * Errors:  -EINVAL (not allocated, freed twice, the root object, or in use by
 *          minl2r_tx_write_block() in the same transaction), -ENOSPC (log), -ENOMEM.
 */
int minl2r_tx_free(struct minl2r_tx *tx, uint64_t offset, uint64_t blocks);

/* ---- Transactions: undo now, store directly -------------------------------------- */

/*
 * Logs the bytes at `pm` now; afterwards the caller stores to them directly, until
 * commit or abort. `writable` is the address of a pointer of any type, as in
 * minl2r_tx_edit(), which is set to where to store; or NULL. Abort and recovery bring
 * the logged bytes back.
 *
 * Cost:    one fence. Takes a lane; waits for one, but not while this thread's other
 *          transactions hold one.
 * Crash:   old until commit.
 * Errors:  -EINVAL, -ENOSPC (log), -ENOMEM, -EBUSY (no lane is free and this thread
 *          holds one already).
 */
int minl2r_tx_snapshot(struct minl2r_tx *tx, const void *pm, size_t size,
                       void *writable);

struct minl2r_range {
    const void *pm;
    size_t size;
};

/*
 * As minl2r_tx_snapshot(), for `count` ranges with one fence in all: all or none.
 * `writable` is an array of `count` pointers, which are set to where to store to each
 * range; or NULL.
 */
int minl2r_tx_snapshotv(struct minl2r_tx *tx, const struct minl2r_range *ranges,
                        size_t count, void **writable);

/* ---- One word, without a transaction --------------------------------------------- */

/*
 * Stores one aligned word: atomic and durable when it returns.
 *
 * Cost:    one fence, one line, no log. A fence more where a commit of two fences
 *          changed the word last.
 * Crash:   old or new during the call, new after it.
 * Errors:  -EINVAL, -EIO, -EPERM.
 */
int minl2r_store64(struct minl2r_pool *pool, const uint64_t *p, uint64_t value);

/* ---- Small objects --------------------------------------------------------------- */

/*
 * A slab: objects smaller than a block, cut from blocks of one size class each. It lies
 * in PM, zeroed at first (in a root object, say), and is changed by the caller's
 * transactions only; whoever calls holds the slab's lock from the first call until
 * commit. A block whose last object is freed goes back to the pool: an empty slab holds
 * nothing.
 */
#define MINL2R_SLAB_CLASSES 24
struct minl2r_slab {
    uint64_t partial[MINL2R_SLAB_CLASSES]; /* per class: the first block with room */
};

/*
 * Allocates `size` bytes, aligned to 16. Classes are two per doubling; what does not
 * fit into a block twice takes whole blocks. So full blocks take at most 2.1 times the
 * sizes of their objects (2.3 with blocks below 4 KiB), where one below 16 B counts
 * as 16.
 *
 * Fill it by minl2r_tx_write_fresh() or minl2r_tx_write(). An object that was there
 * before the transaction and is freed by it is not handed out again by it. One that it
 * allocated and freed itself may be: do not fill such, then, by both calls in turn.
 *
 * Cost:    none until commit: a word in a block's header, up to three more when the
 *          block gets full; now and then a new block. It does not grow with the number
 *          of objects.
 * Crash:   allocated if and only if the transaction is committed.
 * Errors:  -ENOSPC, -EINVAL (no bytes; `slab` outside the data area), -ENOMEM, -EUCLEAN
 *          (damaged slab): then nothing of this call is queued. After -ENOMEM, though,
 *          the transaction must be aborted.
 */
int minl2r_slab_alloc(struct minl2r_tx *tx, const struct minl2r_slab *slab, size_t size,
                      uint64_t *offset);

/*
 * Frees what minl2r_slab_alloc() gave for the same `size`, once committed.
 *
 * Cost:    none until commit: as minl2r_slab_alloc(), or a block that becomes free.
 * Crash:   freed if and only if the transaction is committed.
 * Errors:  -EINVAL (not allocated with this size, or freed already), and as for
 *          minl2r_slab_alloc().
 */
int minl2r_slab_free(struct minl2r_tx *tx, const struct minl2r_slab *slab,
                     uint64_t offset, size_t size);

/* ---- Statistics ------------------------------------------------------------------ */

/* Counted since the pool was opened. A line is 64 bytes. */
struct minl2r_stats {
    uint64_t commits;           /* commits that had something queued, and store64s */
    uint64_t aborts;            /* transactions aborted */
    uint64_t fences;            /* fences (or msyncs) that had something to wait for */
    uint64_t lines_flushed;     /* lines written back from the cache */
    uint64_t lines_streamed;    /* lines written past the cache */
    uint64_t log_payload_bytes; /* original bytes and pointers saved */
    uint64_t log_bytes;         /* log as written: headers and padding included */
    uint64_t pm_bytes;          /* all bytes stored to PM, the log included */
    uint64_t pointer_swaps;     /* blocks changed by pointer logging */
    uint64_t blocks_allocated;  /* by commits, swaps included */
    uint64_t blocks_freed;
};

/*
 * A sum over all threads, exact when none is inside a call.
 *
 * Cost:    none.
 * Errors:  -EPERM (after fork).
 */
int minl2r_stats_get(struct minl2r_pool *pool, struct minl2r_stats *stats);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
