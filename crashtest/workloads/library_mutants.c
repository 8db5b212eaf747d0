/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/library_mutants.h"

#include <stdlib.h>
#include <string.h>

#include "crashtest/workloads/door.h"
#include "crashtest/workloads/library_operations.h"
#include "libminl2r/alloc.h"
#include "libminl2r/commit.h"
#include "libminl2r/lane.h"
#include "libminl2r/live.h"
#include "libminl2r/log.h"

#define LANES_MAX 8

/* ---- The catalogue --------------------------------------------------------------- */

enum bug {
    DOOR,            /* `fault` of it */
    SIZE_NOT_LOGGED, /* ranges of fault.nth bytes */
    RANGE_NOT_LOGGED,
    RECORD_TOO_SHORT,
    SNAPSHOT_NOT_LOGGED,
    BLOCKS_NOT_LOGGED,
    SWAP_NOT_LOGGED,
    ADDRESS_LOGGED,
    TORN_BATCH_IS_VALID,
    SETTLED_EARLY,
    NOT_SETTLED,
    GENERATION_USED_AGAIN,
    WORD_NOT_NOTED,
    SETTLED_FORGOTTEN,
    ADDRESS_NOTED,
    LOCK_ON_MEDIA,
    FREED_TOO_EARLY,
    NOT_RELEASED,
    NOT_PUBLISHED,
    BITS_IN_THE_CACHE,
    OLD_BATCH_UNDONE,
    NEWEST_BATCH_NOT_UNDONE,
    OLDEST_FIRST,
    OTHER_LANES_FORGOTTEN,
    ONLY_LIVE_LANES_SETTLED,
    NO_LANE_SETTLED,
    SETTLED_MOVES_BACK,
    FREE_NOT_UNDONE,
    ALLOC_NOT_UNDONE,
    NEIGHBOUR_UNDONE,
    TWINS_NOT_RELOADED,
    LOG_CLEARED_FIRST,
    UNDONE_FOR_EVER,

    /* Of slot commits. */
    LOG_SETTLES_NOBODY,
    BYTES_SETTLE_NOBODY,
    WORD_SETTLES_NOBODY,
    STORE64_SETTLES_NOBODY,
    ONE_RANGE_OWNED,
    RANGES_NOT_JOINED,
    SLOTS_LEFT_OUT,
    BLOCKS_LEFT_OUT,
    BLOCKS_NOT_JOINED,
    FREEING_SETTLES_NOBODY,
    BYTES_NOT_LISTED,
    SLOTS_NOT_LISTED,
    ASLEEP_WHILE_LIVE,
    NOT_WOKEN,
    WOKEN_BUT_NOT_COUNTED,
    NOT_LINKED,
    OTHERS_UNLINKED,
    TAGGED_WITHOUT_LIST,
    IDLE_NOT_FLUSHED,
    NO_QUARANTINE,
    QUARANTINE_SETTLES_NOBODY,
    FULL_POOL_SETTLES_NOBODY,
    ENDED_WITHOUT_LOG,
    SLOT_COMMIT_FORGOTTEN,
    FIRST_CHANGE_HASHED,
    HASH_IGNORES_PLACES,
    LATER_SWAPS_IGNORED,
    FREED_HOLDERS_IGNORED,
    ONE_GENERATION_SETTLED,
};

#define SCRIPTS_MAX 4

struct library_mutant {
    struct mutant mutant;
    enum bug bug;
    enum mutant_place place;
    const char *scripts[SCRIPTS_MAX]; /* that have to find it; ends with NULL */
    struct door_fault fault;
};

#define RUN MUTANT_IN_RUN
#define RECOVERY MUTANT_IN_RECOVERY
#define OLD_OR_NEW "old or new"

/* clang-format off */
static const struct library_mutant mutants[] = {
    /* Flushes. */
    {{"log-not-flushed", "F1", "a log stays in the cache", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_ranges"}, {DOOR_LOSE_STREAM, 0}},
    {{"change-not-flushed", "F1", "a change in place is not flushed", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_ranges"}, {DOOR_LOSE_FLUSH, 0}},
    {{"word-not-flushed", "F1", "a word without a log is not flushed", OLD_OR_NEW},
     DOOR, RUN, {"small-log.store_word"}, {DOOR_LOSE_STREAM, 0}},
    {{"settled-not-flushed", "F1",
      "the settled generation stays in the cache", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_ranges"}, {DOOR_LOSE_STREAM, 1}},
    {{"bits-in-the-cache", "F1", "the bits of new blocks stay in the cache", OLD_OR_NEW},
     BITS_IN_THE_CACHE, RUN, {"small-log.alloc_and_store"}, {0}},
    {{"only-first-line", "F2",
      "of a change only the first line is flushed", OLD_OR_NEW},
     DOOR, RUN, {"small-log.snapshot_ranges"}, {DOOR_LOSE_LAST_LINE, 1}},
    {{"only-last-line", "F2", "of a change only the last line is flushed", OLD_OR_NEW},
     DOOR, RUN, {"small-log.snapshot_ranges"}, {DOOR_LOSE_FIRST_LINE, 1}},
    {{"tail-not-flushed", "F3", "the tail of a change is not flushed", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_across_blocks"}, {DOOR_LOSE_LAST_LINE, 0}},
    {{"unchanged-not-flushed", "F4",
      "what brings no new value is not flushed", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_same"}, {DOOR_LOSE_FLUSH, 0}},
    {{"change-flushed-early", "F5",
      "a change is flushed before it is stored", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_ranges"}, {DOOR_EARLY_FLUSH, 0}},
    {{"word-flushed-early", "F5", "a word is flushed before it is stored", OLD_OR_NEW},
     DOOR, RUN, {"small-log.fresh_in_line_of_word"}, {DOOR_EARLY_FLUSH, 3}},
    {{"end-off-by-one", "F6", "a flush ends a line too early", OLD_OR_NEW},
     DOOR, RUN, {"small-log.snapshot_ranges"}, {DOOR_LOSE_LAST_LINE, 2}},
    {{"change-after-flush", "F7",
      "a change is stored between flush and fence", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_ranges"}, {DOOR_LATE_STORE, 0}},

    /* Fences. */
    {{"no-fence-after-log", "N1", "no fence between log and change", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_ranges"}, {DOOR_LOSE_FENCE, 0}},
    {{"no-fence-before-settled", "N2",
      "no fence between change and settled", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_ranges"}, {DOOR_LOSE_FENCE, 1}},
    {{"no-fence-at-return", "N3", "no fence before commit returns", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_ranges"}, {DOOR_LOSE_FENCE, 2}},
    {{"no-fence-after-word", "N3", "no fence after a word without a log", OLD_OR_NEW},
     DOOR, RUN, {"small-log.store_word"}, {DOOR_LOSE_FENCE, 0}},
    {{"no-fence-after-snapshot", "N4",
      "no fence between snapshot and store", OLD_OR_NEW},
     DOOR, RUN, {"small-log.snapshot"}, {DOOR_LOSE_FENCE, 0}},
    {{"no-fence-after-stream", "N5",
      "no fence between a streamed block and its slot", OLD_OR_NEW},
     DOOR, RUN, {"small-log.block_whole"}, {DOOR_LOSE_FENCE, 0}},
    {{"no-fence-before-size", "N6",
      "no fence between fresh bytes and their size", OLD_OR_NEW},
     DOOR, RUN, {"small-log.fresh_in_other_line"}, {DOOR_LOSE_FENCE, 0}},
    {{"fresh-line-cached", "F1", "a line of fresh bytes stays in the cache", OLD_OR_NEW},
     DOOR, RUN, {"small-log.fresh_line_streamed"}, {DOOR_LOSE_STREAM, 0}},
    {{"fence-of-other-thread", "N7", "another thread fences the log", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_ranges"}, {DOOR_OTHER_FENCE, 0}},
    {{"return-fenced-by-other", "N7",
      "another thread fences before commit returns", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_ranges"}, {DOOR_OTHER_FENCE, 2}},

    /* Order. */
    {{"settled-before-change", "O1",
      "settled is stored before what it settles", OLD_OR_NEW},
     SETTLED_EARLY, RUN, {"small-log.write_ranges"}, {0}},
    {{"size-before-data", "O2",
      "fresh bytes come after the word that shows them", OLD_OR_NEW},
     DOOR, RUN, {"small-log.fresh_in_other_line"}, {DOOR_LATE_STORE, 0}},
    {{"generation-used-again", "O5",
      "a log is used again under the same generation", OLD_OR_NEW},
     GENERATION_USED_AGAIN, RUN, {"small-log.write_ranges+write_across_lines"}, {0}},

    {{"word-before-its-line", "O6",
      "fresh bytes of a word's line are stored after the word", OLD_OR_NEW},
     DOOR, RUN, {"small-log.fresh_in_line_of_word"}, {DOOR_SWAP_STORES, 2}},
    {{"across-line-not-fenced", "O7",
      "no fence after fresh bytes that lie in the word's line in part only",
      OLD_OR_NEW},
     DOOR, RUN, {"small-log.fresh_across_line_of_word"}, {DOOR_LOSE_FENCE, 0}},

    /* Atomicity: what is not logged, since it were atomic. */
    {{"two-words-not-logged", "A1", "two words are taken for atomic", OLD_OR_NEW},
     SIZE_NOT_LOGGED, RUN, {"small-log.write_ranges"}, {.nth = 16}},
    {{"16-bytes-not-logged", "A2", "16 bytes are taken for atomic", OLD_OR_NEW},
     SIZE_NOT_LOGGED, RUN, {"small-log.edit_words"}, {.nth = 16}},
    {{"line-not-logged", "A3", "64 bytes are taken for atomic", OLD_OR_NEW},
     SIZE_NOT_LOGGED, RUN, {"small-log.snapshot"}, {.nth = 64}},
    {{"blocks-in-place", "A7",
      "whole blocks are changed in place without a log", OLD_OR_NEW},
     SIZE_NOT_LOGGED, RUN,
     {"small-log.write_across_blocks"}, {.nth = LIBRARY_BLOCK_SIZE}},
    {{"unaligned-word-not-logged", "A9",
      "a word across two is taken for atomic", OLD_OR_NEW},
     SIZE_NOT_LOGGED, RUN, {"small-log.write_unaligned_word"}, {.nth = 8}},

    /* Log. */
    {{"range-not-logged", "L1", "ranges are not logged", OLD_OR_NEW},
     RANGE_NOT_LOGGED, RUN, {"small-log.write_ranges"}, {0}},
    {{"snapshot-not-logged", "L1", "snapshots are not logged", OLD_OR_NEW},
     SNAPSHOT_NOT_LOGGED, RUN, {"small-log.snapshot"}, {0}},
    {{"swap-not-logged", "L1", "a swap is not logged", OLD_OR_NEW},
     SWAP_NOT_LOGGED, RUN, {"small-log.block_whole"}, {0}},
    {{"log-after-change", "L2", "the log comes after the change", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_ranges"}, {DOOR_LATE_STREAM, 0}},
    {{"record-too-short", "L3", "a record is a byte too short", OLD_OR_NEW},
     RECORD_TOO_SHORT, RUN, {"small-log.write_across_lines"}, {0}},
    {{"torn-batch-is-valid", "L4", "of a batch only the header is hashed", OLD_OR_NEW},
     TORN_BATCH_IS_VALID, RECOVERY, {"small-log.write_across_lines"}, {0}},
    {{"old-batch-undone", "L5", "a settled generation is undone", OLD_OR_NEW},
     OLD_BATCH_UNDONE, RECOVERY, {"small-log.write_ranges"}, {0}},
    {{"not-settled", "L6", "commit does not settle its generation", OLD_OR_NEW},
     NOT_SETTLED, RUN, {"small-log.write_ranges"}, {0}},
    {{"link-not-flushed", "L7",
      "the first batch of a growing log stays in the cache", OLD_OR_NEW},
     DOOR, RUN, {"small-log.write_more_than_log"}, {DOOR_LOSE_STREAM, 0}},
    {{"blocks-not-logged", "L8",
      "what is allocated and freed is not logged", OLD_OR_NEW},
     BLOCKS_NOT_LOGGED, RUN, {"small-log.alloc_and_store"}, {0}},
    {{"free-not-undone", "L9", "freed bits are not set again", OLD_OR_NEW},
     FREE_NOT_UNDONE, RECOVERY, {"small-log.free_run"}, {0}},
    {{"freed-too-early", "L10",
      "a freed block is used before that is settled", "check"},
     FREED_TOO_EARLY, RUN,
     {"small-log.free_run@1.alloc_and_store", "small-log.free_run@2.alloc_and_store"},
     {0}},
    {{"settled-moves-back", "L11",
      "recovery settles an older generation", "generations"},
     SETTLED_MOVES_BACK, RECOVERY, {"small-log.write_ranges"}, {0}},

    /* Blocks. */
    {{"not-released", "L8", "abort keeps its reservations", "run"},
     NOT_RELEASED, RUN, {"small-log.abort_writes"}, {0}},
    {{"not-published", "L8", "new blocks are not allocated on media", "run"},
     NOT_PUBLISHED, RUN, {"small-log.alloc_and_store"}, {0}},

    /* Recovery. */
    {{"oldest-first", "R1", "batches are undone oldest first", OLD_OR_NEW},
     OLDEST_FIRST, RECOVERY, {"small-log.snapshots_overlap"}, {0}},
    {{"newest-not-undone", "R1", "the newest batch is not undone", OLD_OR_NEW},
     NEWEST_BATCH_NOT_UNDONE, RECOVERY, {"small-log.snapshots_overlap"}, {0}},
    {{"undone-not-fenced", "R2", "no fence after what recovery stores first",
      OLD_OR_NEW},
     DOOR, RECOVERY, {"small-log.write_ranges"}, {DOOR_LOSE_FENCE, 0}},
    {{"log-cleared-first", "R2",
      "a log is cleared before what it undid is flushed", OLD_OR_NEW},
     LOG_CLEARED_FIRST, RECOVERY, {"small-log.write_ranges"}, {0}},
    {{"twins-not-reloaded", "R3",
      "DRAM is not rebuilt after blocks were undone", "reservations"},
     TWINS_NOT_RELOADED, RECOVERY, {"small-log.alloc_and_store"}, {0}},
    {{"half-initialised", "R4", "a pool is there before it is whole", "check"},
     DOOR, RUN, {"garbage.format"}, {DOOR_LOSE_FENCE, 1}},
    {{"first-lane-only", "R5", "only the first lane is recovered", OLD_OR_NEW},
     OTHER_LANES_FORGOTTEN, RECOVERY,
     {"small-log.write_beside_open", "small-log.write_ranges@1.write_ranges"}, {0}},
    {{"neighbour-undone", "R6", "undoing frees one block too many", OLD_OR_NEW},
     NEIGHBOUR_UNDONE, RECOVERY, {"small-log.alloc_and_store"}, {0}},
    {{"alloc-not-undone", "R6", "allocated bits are not cleared again", OLD_OR_NEW},
     ALLOC_NOT_UNDONE, RECOVERY, {"small-log.alloc_and_store"}, {0}},
    {{"node-not-undone", "R6",
      "of a slot commit that is undone, what it allocated besides stays allocated",
      OLD_OR_NEW},
     ALLOC_NOT_UNDONE, RECOVERY, {"slots-and-bytes.alloc_and_store"}, {0}},
    {{"node-not-finished", "R6",
      "of a slot commit that is finished, what it allocated besides is not", OLD_OR_NEW},
     FREE_NOT_UNDONE, RECOVERY, {"slots-and-bytes.alloc_and_store"}, {0}},
    {{"no-lane-settled", "R7", "recovery settles no lane", "generations"},
     NO_LANE_SETTLED, RECOVERY, {"small-log.write_ranges"}, {0}},
    {{"undone-for-ever", "R8", "undoing a log does not end", "recovery"},
     UNDONE_FOR_EVER, RECOVERY, {"small-log.write_ranges"}, {0}},
    {{"undone-line-not-flushed", "R10", "what is undone is not flushed", OLD_OR_NEW},
     DOOR, RECOVERY, {"small-log.write_ranges"}, {DOOR_LOSE_FLUSH, 0}},
    {{"same-value-not-flushed", "R10",
      "what had its value already is not flushed", OLD_OR_NEW},
     DOOR, RECOVERY, {"small-log.snapshot_and_abort"}, {DOOR_LOSE_SAME, 0}},
    {{"same-value-not-stored", "R10",
      "what a killed slot commit has streamed is not stored once more", OLD_OR_NEW},
     DOOR, RECOVERY, {"slots-and-bytes.words"}, {DOOR_SKIP_SAME, 0}},
    {{"magic-not-flushed", "R10",
      "the magic number that a killed process has stored is not flushed", "check"},
     DOOR, RECOVERY, {"garbage.format"}, {DOOR_LOSE_LINE, 0}},
    {{"word-not-noted", "R10",
      "recovery does not know of a word without a log", OLD_OR_NEW},
     WORD_NOT_NOTED, RUN, {"small-log.store_word", "small-log.write_word"}, {0}},
    {{"settled-forgotten", "R3",
      "opening forgets what it has settled, and generations begin anew", OLD_OR_NEW},
     SETTLED_FORGOTTEN, RUN, {"small-log.write_ranges+reopen+write_ranges"}, {0}},
    {{"only-live-lanes-settled", "R11",
      "only lanes with something to undo are settled", "generations"},
     ONLY_LIVE_LANES_SETTLED, RECOVERY, {"small-log.write_ranges"}, {0}},
    {{"recovery-not-fenced", "R11", "no fence after lanes are settled", OLD_OR_NEW},
     DOOR, RECOVERY, {"small-log.write_ranges"}, {DOOR_LOSE_FENCE, 1}},

    /* Slot commits, and who comes after them. */
    {{"log-settles-nobody", "L6",
      "who logs leaves slot commits of other lanes live", OLD_OR_NEW},
     LOG_SETTLES_NOBODY, RUN, {"own-lanes.block_and_words+snapshot"}, {0}},
    {{"bytes-settle-nobody", "L6",
      "fresh bytes leave live who owns them", OLD_OR_NEW},
     BYTES_SETTLE_NOBODY, RUN,
     {"own-lanes.block_and_words+fresh_word_of_words"}, {0}},
    {{"word-settles-nobody", "L6",
      "words and slot commits leave live whose bytes they change", OLD_OR_NEW},
     WORD_SETTLES_NOBODY, RUN,
     {"own-lanes.words+words", "slots-and-bytes.words+word_of_words"}, {0}},
    {{"store64-settles-nobody", "L6",
      "store64 leaves live whose bytes it changes", OLD_OR_NEW},
     STORE64_SETTLES_NOBODY, RUN,
     {"own-lanes.block_and_words+store_word_of_words"}, {0}},
    {{"one-range-owned", "L6",
      "of what a slot commit changes in place only the first range is owned",
      OLD_OR_NEW},
     ONE_RANGE_OWNED, RUN, {"own-lanes.many_words+word_of_many"}, {0}},
    {{"ranges-not-joined", "L6",
      "of ranges that are too many only the first is owned", OLD_OR_NEW},
     RANGES_NOT_JOINED, RUN, {"own-lanes.many_words+word_of_many"}, {0}},
    {{"slots-left-out", "L6",
      "the slots of a slot commit are not owned", OLD_OR_NEW},
     SLOTS_LEFT_OUT, RUN,
     {"own-lanes.hole_part+move_block", "own-lanes.block_whole+move_block"}, {0}},
    {{"blocks-left-out", "L6",
      "what a slot commit allocates besides is not owned", OLD_OR_NEW},
     BLOCKS_LEFT_OUT, RUN, {"own-lanes.add_node+swap_in_node"}, {0}},
    {{"blocks-not-joined", "L6",
      "of blocks that a slot commit allocates only the first is owned", OLD_OR_NEW},
     BLOCKS_NOT_JOINED, RUN, {"own-lanes.add_node+swap_in_node"}, {0}},
    {{"freeing-settles-nobody", "L6",
      "a slot commit leaves live who allocated what it frees", OLD_OR_NEW},
     FREEING_SETTLES_NOBODY, RUN, {"own-lanes.add_node+swap_in_node"}, {0}},
    {{"bytes-not-listed", "L6",
      "a lane owns bytes in a piece of the pool that it has not listed", OLD_OR_NEW},
     BYTES_NOT_LISTED, RUN,
     {"own-lanes.words+words", "own-lanes.block_and_words+fresh_word_of_words"}, {0}},
    {{"slots-not-listed", "L6",
      "a lane owns slots in a piece of the pool that it has not listed", OLD_OR_NEW},
     SLOTS_NOT_LISTED, RUN,
     {"own-lanes.hole_part+move_block", "own-lanes.block_whole+move_block"}, {0}},
    {{"asleep-while-live", "L6",
      "a lane that is live falls asleep before it is settled", OLD_OR_NEW},
     ASLEEP_WHILE_LIVE, RUN,
     {"idle-lanes.words+words", "idle-lanes.block_and_words+snapshot"}, {0}},
    {{"not-woken", "L6", "a lane that was asleep commits and does not wake", OLD_OR_NEW},
     NOT_WOKEN, RUN, {"idle-lanes.block_whole+words+words"}, {0}},
    {{"woken-but-not-counted", "L6",
      "a lane that wakes is not counted: others look at none", OLD_OR_NEW},
     WOKEN_BUT_NOT_COUNTED, RUN, {"idle-lanes.block_whole+words+words"}, {0}},
    {{"new-not-woken", "L6", "a lane commits first and does not wake", OLD_OR_NEW},
     NOT_WOKEN, RUN, {"new-lanes.words+words"}, {0}},
    {{"new-not-counted", "L6",
      "a lane that wakes first is not counted: others look at none", OLD_OR_NEW},
     WOKEN_BUT_NOT_COUNTED, RUN, {"new-lanes.words+words"}, {0}},
    {{"new-not-linked", "L6",
      "a lane that wakes first is not among those that others look at", OLD_OR_NEW},
     NOT_LINKED, RUN, {"new-lanes.words+words"}, {0}},
    {{"others-unlinked", "L6",
      "a lane that wakes first drops those that woke before", OLD_OR_NEW},
     OTHERS_UNLINKED, RUN, {"new-lanes.words+block_whole+words"}, {0}},
    {{"tagged-without-list", "L6",
      "a lane that is awake alone lists nothing, and is not looked at", OLD_OR_NEW},
     TAGGED_WITHOUT_LIST, RUN, {"new-lanes.words+words"}, {0}},
    {{"idle-not-flushed", "L6",
      "who looks for idle lanes settles them in the cache only", OLD_OR_NEW},
     IDLE_NOT_FLUSHED, RUN, {"idle-lanes.words+words"}, {0}},
    {{"no-quarantine", "L10",
      "what a slot commit frees is used at once", OLD_OR_NEW},
     NO_QUARANTINE, RUN, {"own-lanes.block_whole+hole_part"}, {0}},
    {{"quarantine-settles-nobody", "L10",
      "quarantine ends while lanes are live", OLD_OR_NEW},
     QUARANTINE_SETTLES_NOBODY, RUN,
     {"own-lanes.block_whole+block_half+hole_part"}, {0}},
    {{"full-pool-settles-nobody", "L10",
      "a full pool uses blocks of another thread's quarantine while lanes are live",
      OLD_OR_NEW},
     FULL_POOL_SETTLES_NOBODY, RUN, {"full.block_whole+block_half"}, {0}},
    {{"ended-without-log", "L10",
      "a slot commit that logs nothing ends quarantine: what its lane left live is live still",
      OLD_OR_NEW},
     ENDED_WITHOUT_LOG, RUN,
     {"slots-and-bytes.swap_many+write_same+block_beside_open"}, {0}},
    {{"slot-commit-forgotten", "L5",
      "a live slot commit is neither undone nor finished", OLD_OR_NEW},
     SLOT_COMMIT_FORGOTTEN, RECOVERY, {"small-log.block_whole"}, {0}},
    {{"first-change-hashed", "L4",
      "of what a slot commit changes in place only the first word is hashed",
      OLD_OR_NEW},
     FIRST_CHANGE_HASHED, RECOVERY, {"slots-and-bytes.words"}, {0}},
    {{"hash-ignores-places", "L4",
      "the hash of what changes is the same wherever the words are", OLD_OR_NEW},
     HASH_IGNORES_PLACES, RECOVERY, {"slots-and-bytes.exchange_words"}, {0}},
    {{"later-swaps-ignored", "R6",
      "slots that were swapped again are finished", OLD_OR_NEW},
     LATER_SWAPS_IGNORED, RECOVERY,
     {"own-lanes.holes_and_words+block_whole"}, {0}},
    {{"freed-holders-ignored", "R6",
      "slots in blocks that are free are finished", OLD_OR_NEW},
     FREED_HOLDERS_IGNORED, RECOVERY,
     {"own-lanes.slot_in_block+copy_holder+slot_in_block"}, {0}},
    {{"one-generation-settled", "L11",
      "recovery settles one generation only", "generations"},
     ONE_GENERATION_SETTLED, RECOVERY, {"small-log.block_whole+block_whole"}, {0}},

    /* Volatile things on media. */
    {{"lock-on-media", "V1", "a lane's lock is on media: held, it is not recovered",
      "old or new"},
     LOCK_ON_MEDIA, RUN, {"small-log.write_ranges"}, {0}},
    {{"address-logged", "V2", "a log holds addresses", "check"},
     ADDRESS_LOGGED, RUN, {"small-log.write_ranges"}, {0}},
    {{"address-noted", "V3", "a lane notes an address", "check"},
     ADDRESS_NOTED, RUN, {"small-log.store_word"}, {0}},
};
/* clang-format on */

static struct {
    const struct library_mutant *chosen;
    enum mutant_place place; /* now */
    bool lane_is_live[LANES_MAX];

    /* A block that leaves quarantine too early is the next one to be used. */
    uint64_t in_quarantine, left_quarantine;
} now;

const struct mutant *library_mutant(size_t index)
{
    return index < sizeof(mutants) / sizeof(mutants[0]) ? &mutants[index].mutant : NULL;
}

const char *const *library_mutate(size_t index)
{
    now.chosen = &mutants[index];
    return now.chosen->scripts;
}

struct door_fault library_mutant_fault(void)
{
    const struct library_mutant *chosen = now.chosen;

    return chosen && chosen->bug == DOOR && chosen->place == RUN
               ? chosen->fault
               : (struct door_fault){0};
}

void mutate_in(enum mutant_place place)
{
    const struct library_mutant *chosen = now.chosen;

    now.place = place;
    if (place == MUTANT_NOWHERE)
        now.in_quarantine = now.left_quarantine = 0;
    if (chosen && chosen->bug == DOOR && chosen->place == RECOVERY)
        door_break(place == RECOVERY ? chosen->fault : (struct door_fault){0});
}

static bool is(enum bug bug)
{
    return now.chosen && now.chosen->place == now.place && now.chosen->bug == bug;
}

/* In earlier steps of the script, too. */
static bool is_chosen(enum bug bug)
{
    return now.chosen && now.chosen->bug == bug;
}

/* ---- Log ------------------------------------------------------------------------- */

void __real_log_append_undo(struct log_writer *writer, uint64_t target, uint64_t size);
void __wrap_log_append_undo(struct log_writer *writer, uint64_t target, uint64_t size);
void __wrap_log_append_undo(struct log_writer *writer, uint64_t target, uint64_t size)
{
    if (is(RANGE_NOT_LOGGED) || (is(SIZE_NOT_LOGGED) && size == now.chosen->fault.nth))
        return;
    if (is(RECORD_TOO_SHORT))
        size--;
    __real_log_append_undo(writer, target, size);
}

void __real_log_append_blocks(struct log_writer *writer, enum pm_record_type type,
                              struct block_run run);
void __wrap_log_append_blocks(struct log_writer *writer, enum pm_record_type type,
                              struct block_run run);
void __wrap_log_append_blocks(struct log_writer *writer, enum pm_record_type type,
                              struct block_run run)
{
    if (!is(BLOCKS_NOT_LOGGED))
        __real_log_append_blocks(writer, type, run);
}

void __real_log_append_swap(struct log_writer *writer, uint64_t slot,
                            struct pm_swap swap);
void __wrap_log_append_swap(struct log_writer *writer, uint64_t slot,
                            struct pm_swap swap);
void __wrap_log_append_swap(struct log_writer *writer, uint64_t slot,
                            struct pm_swap swap)
{
    if (!is(SWAP_NOT_LOGGED))
        __real_log_append_swap(writer, slot, swap);
}

void __real_log_append_slots(struct log_writer *writer, const struct swap *swaps,
                             uint32_t count);
void __wrap_log_append_slots(struct log_writer *writer, const struct swap *swaps,
                             uint32_t count);
void __wrap_log_append_slots(struct log_writer *writer, const struct swap *swaps,
                             uint32_t count)
{
    if (!is(SWAP_NOT_LOGGED))
        __real_log_append_slots(writer, swaps, count);
}

static void log_address(const struct log_writer *writer)
{
    struct pm_record *record =
        (struct pm_record *)(void *)(writer->batch + sizeof(struct pm_batch));

    record->target += (uintptr_t)writer->pool->pm.base;
}

void __real_lane_store_settled(struct minl2r_pool *pool, struct lane *lane,
                               uint64_t generation, struct pm_phase *phase);

static const uint64_t *lock_word(const struct minl2r_pool *pool, uint32_t lane)
{
    return &pool_lane(pool, lane)->pad1[0];
}

static void lock_on_media(const struct minl2r_pool *pool, uint32_t lane,
                          struct pm_phase *phase, uint64_t value)
{
    pm_store_piece(phase, lock_word(pool, lane), &value, sizeof(value));
    pm_flush(phase, lock_word(pool, lane), sizeof(value));
}

void __real_log_end(struct log_writer *writer);
void __wrap_log_end(struct log_writer *writer);
void __wrap_log_end(struct log_writer *writer)
{
    if (is(LOCK_ON_MEDIA))
        lock_on_media(writer->pool, writer->cursor->lane, writer->phase, 1);
    if (is(SNAPSHOT_NOT_LOGGED))
        return;
    if (is(ADDRESS_LOGGED) && writer->size > 0)
        log_address(writer);
    __real_log_end(writer);
    if (is(SETTLED_EARLY))
        __real_lane_store_settled(writer->pool,
                                  &writer->pool->lanes[writer->cursor->lane],
                                  writer->cursor->generation, writer->phase);
}

/* Of a batch, only the header is hashed. Nothing else has a seed. */
uint64_t __real_pm_hash(const void *data, size_t size, uint64_t seed);
uint64_t __wrap_pm_hash(const void *data, size_t size, uint64_t seed);
uint64_t __wrap_pm_hash(const void *data, size_t size, uint64_t seed)
{
    size_t header = sizeof(struct pm_batch) - sizeof(uint64_t);
    bool is_batch = seed != 0 && size > header;

    if (now.chosen && now.chosen->bug == TORN_BATCH_IS_VALID && is_batch)
        size = header;
    return __real_pm_hash(data, size, seed);
}

/* Alike where it is stored and where it is compared. */
uint64_t __real_log_hash_changes(const void *bytes, size_t size);
uint64_t __wrap_log_hash_changes(const void *bytes, size_t size);
uint64_t __wrap_log_hash_changes(const void *bytes, size_t size)
{
    uint64_t word, sum = 0;

    if (is_chosen(FIRST_CHANGE_HASHED))
        size = sizeof(word);
    if (!is_chosen(HASH_IGNORES_PLACES))
        return __real_log_hash_changes(bytes, size);
    for (size_t at = 0; at + sizeof(word) <= size; at += sizeof(word)) {
        memcpy(&word, (const uint8_t *)bytes + at, sizeof(word));
        sum += word;
    }
    return sum;
}

uint64_t __real_log_hash_in_place(const struct pm_range *ranges, size_t count);
uint64_t __wrap_log_hash_in_place(const struct pm_range *ranges, size_t count);
uint64_t __wrap_log_hash_in_place(const struct pm_range *ranges, size_t count)
{
    uint8_t bytes[PM_BATCH_SIZE_MAX];
    size_t size = 0;

    if (!is_chosen(FIRST_CHANGE_HASHED) && !is_chosen(HASH_IGNORES_PLACES))
        return __real_log_hash_in_place(ranges, count);
    for (size_t i = 0; i < count; size += ranges[i++].size)
        memcpy(bytes + size, ranges[i].start, ranges[i].size);
    return __wrap_log_hash_changes(bytes, size);
}

/* ---- Lanes ----------------------------------------------------------------------- */

int __real_lane_settle(struct minl2r_pool *pool, struct lane *lane, uint64_t generation,
                       struct pm_phase *phase);
int __wrap_lane_settle(struct minl2r_pool *pool, struct lane *lane, uint64_t generation,
                       struct pm_phase *phase);
int __wrap_lane_settle(struct minl2r_pool *pool, struct lane *lane, uint64_t generation,
                       struct pm_phase *phase)
{
    if (is(NOT_SETTLED))
        return 0;
    int result = __real_lane_settle(pool, lane, generation, phase);

    if (now.chosen && now.chosen->bug == GENERATION_USED_AGAIN)
        lane->settled = --lane->generation;
    return result;
}

void __wrap_lane_store_settled(struct minl2r_pool *pool, struct lane *lane,
                               uint64_t generation, struct pm_phase *phase);
void __wrap_lane_store_settled(struct minl2r_pool *pool, struct lane *lane,
                               uint64_t generation, struct pm_phase *phase)
{
    if (is(NO_LANE_SETTLED) ||
        (is(ONLY_LIVE_LANES_SETTLED) && !now.lane_is_live[lane->index]))
        return;
    if (is(SETTLED_MOVES_BACK))
        generation = lane->settled - 1;
    if (is(ONE_GENERATION_SETTLED))
        generation = lane->settled + 1;
    if (is(LOCK_ON_MEDIA))
        lock_on_media(pool, lane->index, phase, 0);
    __real_lane_store_settled(pool, lane, generation, phase);
    if (is(SETTLED_FORGOTTEN))
        lane->settled = lane->generation = 0;
}

void __real_lane_note_word(struct minl2r_pool *pool, const struct lane *lane,
                           struct pm_phase *phase, uint64_t word);
void __wrap_lane_note_word(struct minl2r_pool *pool, const struct lane *lane,
                           struct pm_phase *phase, uint64_t word);
void __wrap_lane_note_word(struct minl2r_pool *pool, const struct lane *lane,
                           struct pm_phase *phase, uint64_t word)
{
    if (is(ADDRESS_NOTED))
        word += (uintptr_t)pool->pm.base;
    if (!is(WORD_NOT_NOTED))
        __real_lane_note_word(pool, lane, phase, word);
}

/* ---- Blocks ---------------------------------------------------------------------- */

void __real_alloc_release(struct minl2r_pool *pool, struct block_run run);
void __wrap_alloc_release(struct minl2r_pool *pool, struct block_run run);
void __wrap_alloc_release(struct minl2r_pool *pool, struct block_run run)
{
    if (!is(NOT_RELEASED))
        __real_alloc_release(pool, run);
}

void __real_alloc_publish(struct minl2r_pool *pool, struct pm_phase *phase,
                          struct block_run run);
void __wrap_alloc_publish(struct minl2r_pool *pool, struct pm_phase *phase,
                          struct block_run run);
void __wrap_alloc_publish(struct minl2r_pool *pool, struct pm_phase *phase,
                          struct block_run run)
{
    if (!is(FREE_NOT_UNDONE))
        __real_alloc_publish(pool, phase, run);
}

void __real_alloc_release_freed(struct minl2r_pool *pool, struct block_run run);
void __real_alloc_unpublish(struct minl2r_pool *pool, struct pm_phase *phase,
                            struct block_run run);
void __wrap_alloc_unpublish(struct minl2r_pool *pool, struct pm_phase *phase,
                            struct block_run run);
void __wrap_alloc_unpublish(struct minl2r_pool *pool, struct pm_phase *phase,
                            struct block_run run)
{
    if (is(ALLOC_NOT_UNDONE))
        return;
    if (is(NEIGHBOUR_UNDONE))
        run.offset -= pool->geo.block_size;
    __real_alloc_unpublish(pool, phase, run);
}

bool __real_alloc_add_bits(struct minl2r_pool *pool, struct bit_changes *bits,
                           struct block_run run, bool allocated);
bool __wrap_alloc_add_bits(struct minl2r_pool *pool, struct bit_changes *bits,
                           struct block_run run, bool allocated);
bool __wrap_alloc_add_bits(struct minl2r_pool *pool, struct bit_changes *bits,
                           struct block_run run, bool allocated)
{
    if (is(NOT_PUBLISHED) && allocated)
        return true;
    if (is(FREED_TOO_EARLY) && !allocated)
        __real_alloc_release_freed(pool, run);
    return __real_alloc_add_bits(pool, bits, run, allocated);
}

void __real_alloc_stream_bits(struct minl2r_pool *pool, struct pm_phase *phase,
                              struct bit_changes *bits);
void __wrap_alloc_stream_bits(struct minl2r_pool *pool, struct pm_phase *phase,
                              struct bit_changes *bits);
void __wrap_alloc_stream_bits(struct minl2r_pool *pool, struct pm_phase *phase,
                              struct bit_changes *bits)
{
    if (!is(BITS_IN_THE_CACHE)) {
        __real_alloc_stream_bits(pool, phase, bits);
        /*
         * Here one thread runs the operations of all lanes: it waits for none of them.
         */
        alloc_unlock_bits(pool, bits);
        return;
    }
    for (uint32_t i = 0; i < bits->count; i++) {
        pm_or64(phase, pool_bitmap_word(pool, bits->words[i].index * 64),
                bits->words[i].set);
        pm_and64(phase, pool_bitmap_word(pool, bits->words[i].index * 64),
                 ~bits->words[i].clear);
    }
}

void __wrap_alloc_release_freed(struct minl2r_pool *pool, struct block_run run);
void __wrap_alloc_release_freed(struct minl2r_pool *pool, struct block_run run)
{
    if (!is(FREED_TOO_EARLY))
        __real_alloc_release_freed(pool, run);
}

void __real_alloc_reload(struct minl2r_pool *pool);
void __wrap_alloc_reload(struct minl2r_pool *pool);
void __wrap_alloc_reload(struct minl2r_pool *pool)
{
    if (!is(TWINS_NOT_RELOADED))
        __real_alloc_reload(pool);
}

uint32_t __real_alloc_quarantine(struct minl2r_pool *pool, const uint64_t *blocks,
                                 uint32_t count);
uint32_t __wrap_alloc_quarantine(struct minl2r_pool *pool, const uint64_t *blocks,
                                 uint32_t count);
static uint32_t quarantine_one(struct minl2r_pool *pool, uint64_t block)
{
    if (is_chosen(NO_QUARANTINE))
        now.left_quarantine = block;
    else if (is_chosen(QUARANTINE_SETTLES_NOBODY) && now.in_quarantine == 0)
        now.in_quarantine = block;
    else
        return __real_alloc_quarantine(pool, &block, 1);
    return 1;
}

uint32_t __wrap_alloc_quarantine(struct minl2r_pool *pool, const uint64_t *blocks,
                                 uint32_t count)
{
    uint32_t done = 0;

    while (done < count && quarantine_one(pool, blocks[done]))
        done++;
    return done;
}

uint64_t __real_alloc_quarantine_count(const struct minl2r_pool *pool, uint32_t which);
uint64_t __wrap_alloc_quarantine_count(const struct minl2r_pool *pool, uint32_t which);
uint64_t __wrap_alloc_quarantine_count(const struct minl2r_pool *pool, uint32_t which)
{
    if (is_chosen(QUARANTINE_SETTLES_NOBODY))
        return 1000; /* always long enough to be ended */
    return __real_alloc_quarantine_count(pool, which);
}

void __real_alloc_end_quarantine(struct minl2r_pool *pool, uint32_t which,
                                 uint64_t mark);
void __wrap_alloc_end_quarantine(struct minl2r_pool *pool, uint32_t which,
                                 uint64_t mark);
void __wrap_alloc_end_quarantine(struct minl2r_pool *pool, uint32_t which,
                                 uint64_t mark)
{
    if (is_chosen(QUARANTINE_SETTLES_NOBODY))
        now.left_quarantine = now.in_quarantine;
    else
        __real_alloc_end_quarantine(pool, which, mark);
}

/* Of a slot commit: the log is there, if there is one. */
void __real_commit_store_in_place(struct minl2r_tx *tx);
void __wrap_commit_store_in_place(struct minl2r_tx *tx);
void __wrap_commit_store_in_place(struct minl2r_tx *tx)
{
    uint32_t own = alloc_own_quarantine(tx->pool);

    if (is(ENDED_WITHOUT_LOG) && tx->cursor.index == 0 &&
        __real_alloc_quarantine_count(tx->pool, own) >= LIBRARY_MANY)
        __real_alloc_end_quarantine(tx->pool, own,
                                    alloc_quarantine_mark(tx->pool, own));
    __real_commit_store_in_place(tx);
}

uint64_t __real_alloc_free_blocks(const struct minl2r_pool *pool);
uint64_t __wrap_alloc_free_blocks(const struct minl2r_pool *pool);
uint64_t __wrap_alloc_free_blocks(const struct minl2r_pool *pool)
{
    return __real_alloc_free_blocks(pool) + (now.left_quarantine != 0) +
           (now.in_quarantine != 0 && now.left_quarantine != now.in_quarantine);
}

int __real_alloc_reserve_swap(struct minl2r_pool *pool, uint64_t spare,
                              uint64_t *offset);
int __wrap_alloc_reserve_swap(struct minl2r_pool *pool, uint64_t spare,
                              uint64_t *offset);
int __wrap_alloc_reserve_swap(struct minl2r_pool *pool, uint64_t spare,
                              uint64_t *offset)
{
    if (now.left_quarantine == 0)
        return __real_alloc_reserve_swap(pool, spare, offset);
    *offset = now.left_quarantine;
    now.in_quarantine = now.left_quarantine = 0;
    return 0;
}

bool __real_alloc_is_allocated(const struct minl2r_pool *pool, struct block_run run);
bool __wrap_alloc_is_allocated(const struct minl2r_pool *pool, struct block_run run);
bool __wrap_alloc_is_allocated(const struct minl2r_pool *pool, struct block_run run)
{
    return is(FREED_HOLDERS_IGNORED) || __real_alloc_is_allocated(pool, run);
}

/* ---- Live generations ------------------------------------------------------------ */

void __real_live_settle_all(struct minl2r_pool *pool, const struct lane *own,
                            struct pm_phase *phase, struct settling *settling);
void __wrap_live_settle_all(struct minl2r_pool *pool, const struct lane *own,
                            struct pm_phase *phase, struct settling *settling);
void __wrap_live_settle_all(struct minl2r_pool *pool, const struct lane *own,
                            struct pm_phase *phase, struct settling *settling)
{
    if (!is(LOG_SETTLES_NOBODY) && !is_chosen(QUARANTINE_SETTLES_NOBODY))
        __real_live_settle_all(pool, own, phase, settling);
}

int __real_live_end_quarantine(struct minl2r_pool *pool, struct pm_phase *phase,
                               struct settling *settling);
int __wrap_live_end_quarantine(struct minl2r_pool *pool, struct pm_phase *phase,
                               struct settling *settling);
int __wrap_live_end_quarantine(struct minl2r_pool *pool, struct pm_phase *phase,
                               struct settling *settling)
{
    if (!is_chosen(FULL_POOL_SETTLES_NOBODY))
        return __real_live_end_quarantine(pool, phase, settling);
    for (uint32_t i = 0; i < alloc_quarantines(pool); i++)
        alloc_end_quarantine(pool, i, alloc_quarantine_mark(pool, i));
    return 0;
}

void __real_live_settle_bytes(struct minl2r_pool *pool, const struct lane *own,
                              struct interval range, struct pm_phase *phase,
                              struct settling *settling);
void __wrap_live_settle_bytes(struct minl2r_pool *pool, const struct lane *own,
                              struct interval range, struct pm_phase *phase,
                              struct settling *settling);
void __wrap_live_settle_bytes(struct minl2r_pool *pool, const struct lane *own,
                              struct interval range, struct pm_phase *phase,
                              struct settling *settling)
{
    if (!is(BYTES_SETTLE_NOBODY))
        __real_live_settle_bytes(pool, own, range, phase, settling);
}

void __real_live_settle_word(struct minl2r_pool *pool, const struct lane *own,
                             struct interval range, struct pm_phase *phase,
                             struct settling *settling);
void __wrap_live_settle_word(struct minl2r_pool *pool, const struct lane *own,
                             struct interval range, struct pm_phase *phase,
                             struct settling *settling);
void __wrap_live_settle_word(struct minl2r_pool *pool, const struct lane *own,
                             struct interval range, struct pm_phase *phase,
                             struct settling *settling)
{
    if (!is(WORD_SETTLES_NOBODY))
        __real_live_settle_word(pool, own, range, phase, settling);
}

int __real_live_settle_word_now(struct minl2r_pool *pool, uint64_t offset,
                                struct pm_phase *phase);
int __wrap_live_settle_word_now(struct minl2r_pool *pool, uint64_t offset,
                                struct pm_phase *phase);
int __wrap_live_settle_word_now(struct minl2r_pool *pool, uint64_t offset,
                                struct pm_phase *phase)
{
    if (is(STORE64_SETTLES_NOBODY))
        return 0;
    return __real_live_settle_word_now(pool, offset, phase);
}

void __real_live_settle_blocks(struct minl2r_pool *pool, const struct lane *own,
                               struct interval range, struct pm_phase *phase,
                               struct settling *settling);
void __wrap_live_settle_blocks(struct minl2r_pool *pool, const struct lane *own,
                               struct interval range, struct pm_phase *phase,
                               struct settling *settling);
void __wrap_live_settle_blocks(struct minl2r_pool *pool, const struct lane *own,
                               struct interval range, struct pm_phase *phase,
                               struct settling *settling)
{
    if (!is(FREEING_SETTLES_NOBODY))
        __real_live_settle_blocks(pool, own, range, phase, settling);
}

void __real_live_own(struct lane *lane, struct interval slots,
                     const struct owned *bytes, struct interval blocks);
void __wrap_live_own(struct lane *lane, struct interval slots,
                     const struct owned *bytes, struct interval blocks);
void __wrap_live_own(struct lane *lane, struct interval slots,
                     const struct owned *bytes, struct interval blocks)
{
    struct owned some = *bytes;

    if (is(ONE_RANGE_OWNED) && some.count > 1)
        some.count = 1;
    if (is(RANGES_NOT_JOINED) && some.count == OWNED_MAX)
        some.ranges[OWNED_MAX - 1].high =
            some.ranges[OWNED_MAX - 1].low + sizeof(uint64_t);
    if (is(BLOCKS_LEFT_OUT))
        blocks.high = blocks.low;
    if (is(BLOCKS_NOT_JOINED) && blocks.low < blocks.high)
        blocks.high = blocks.low + LIBRARY_BLOCK_SIZE;
    __real_live_own(lane, slots, &some, blocks);
    if (is(SLOTS_LEFT_OUT))
        lane->slots = (struct interval){0};
}

bool __real_live_lists(const struct minl2r_pool *pool, struct lane *lane,
                       uint64_t generation);
bool __wrap_live_lists(const struct minl2r_pool *pool, struct lane *lane,
                       uint64_t generation);
bool __wrap_live_lists(const struct minl2r_pool *pool, struct lane *lane,
                       uint64_t generation)
{
    bool lists = __real_live_lists(pool, lane, generation);

    if (is(TAGGED_WITHOUT_LIST) && !lists) {
        if (!lane->listed)
            lane->listed = calloc(1, sizeof(*lane->listed));
        lane->listed_tag = lane->listed != NULL;
    }
    return lists;
}

void __real_live_list(struct lane *lane, enum listed_kind kind, struct interval range);
void __wrap_live_list(struct lane *lane, enum listed_kind kind, struct interval range);
void __wrap_live_list(struct lane *lane, enum listed_kind kind, struct interval range)
{
    if (!is(kind == LISTED_BYTES ? BYTES_NOT_LISTED : SLOTS_NOT_LISTED))
        __real_live_list(lane, kind, range);
}

static void put_to_sleep(struct minl2r_pool *pool, struct lane *lane)
{
    lane->wakefulness = LANE_ASLEEP;
    pool->awake_lanes--;
}

static void settle_in_cache(struct minl2r_pool *pool, const struct lane *lane,
                            struct pm_phase *phase, struct settling *settling)
{
    phase->last_line = 0;
    pm_max64(phase, &pool_lane(pool, lane->index)->settled, lane->live);
    settling->generations[lane->index] = lane->live;
    settling->any = true;
}

/*
 * Lanes that are not live fall asleep at once here: whether the kernel has a barrier or
 * not, and whoever has stirred.
 */
void __real_live_look_for_idle(struct minl2r_pool *pool, const struct lane *own,
                               struct pm_phase *phase, struct settling *settling);
void __wrap_live_look_for_idle(struct minl2r_pool *pool, const struct lane *own,
                               struct pm_phase *phase, struct settling *settling);
void __wrap_live_look_for_idle(struct minl2r_pool *pool, const struct lane *own,
                               struct pm_phase *phase, struct settling *settling)
{
    bool is_of_sleep = is(NOT_WOKEN) || is(WOKEN_BUT_NOT_COUNTED) ||
                       is(ASLEEP_WHILE_LIVE) || is(IDLE_NOT_FLUSHED);

    if (!is_of_sleep)
        __real_live_look_for_idle(pool, own, phase, settling);
    for (struct lane *lane = pool->live_lanes; lane && is_of_sleep;
         lane = lane->next_live) {
        if (lane == own || lane->wakefulness == LANE_ASLEEP)
            continue;
        if (lane->live == 0 || is(ASLEEP_WHILE_LIVE))
            put_to_sleep(pool, lane);
        else if (is(IDLE_NOT_FLUSHED))
            settle_in_cache(pool, lane, phase, settling);
    }
}

/* Of a lane that is not linked yet. */
static void link_wrongly(struct minl2r_pool *pool, struct lane *lane)
{
    if (lane->is_linked || (!is(NOT_LINKED) && !is(OTHERS_UNLINKED)))
        return;
    lane->is_linked = true;
    if (is(OTHERS_UNLINKED))
        pool->live_lanes = lane; /* and none behind it */
}

void __real_live_wake(struct minl2r_pool *pool, struct lane *lane);
void __wrap_live_wake(struct minl2r_pool *pool, struct lane *lane);
void __wrap_live_wake(struct minl2r_pool *pool, struct lane *lane)
{
    uint32_t awake = pool->awake_lanes;

    if (is(NOT_WOKEN))
        return;
    link_wrongly(pool, lane);
    __real_live_wake(pool, lane);
    if (is(WOKEN_BUT_NOT_COUNTED))
        pool->awake_lanes = awake;
}

void __real_live_enter(struct minl2r_pool *pool, struct lane *lane,
                       uint64_t generation);
void __wrap_live_enter(struct minl2r_pool *pool, struct lane *lane,
                       uint64_t generation);
void __wrap_live_enter(struct minl2r_pool *pool, struct lane *lane, uint64_t generation)
{
    uint32_t awake = pool->awake_lanes;

    link_wrongly(pool, lane);
    if (is(NOT_WOKEN))
        lane->live = generation;
    else
        __real_live_enter(pool, lane, generation);
    if (is(WOKEN_BUT_NOT_COUNTED))
        pool->awake_lanes = awake;
}

/* ---- Recovery -------------------------------------------------------------------- */

static void take_old_for_live(const struct minl2r_pool *pool, uint32_t lane,
                              struct log_live *live)
{
    uint64_t generation = log_first_generation(pool, lane);

    if (live->last == 0 && generation != 0)
        *live = (struct log_live){.newest = live->newest,
                                  .generation = generation,
                                  .last = pool_log_offset(pool, lane),
                                  .batches = 1};
}

int __real_log_validate(struct minl2r_pool *pool, uint32_t lane, struct log_live *live);
int __wrap_log_validate(struct minl2r_pool *pool, uint32_t lane, struct log_live *live);
int __wrap_log_validate(struct minl2r_pool *pool, uint32_t lane, struct log_live *live)
{
    int result = __real_log_validate(pool, lane, live);

    now.lane_is_live[lane % LANES_MAX] = live->last != 0;
    if ((is(OTHER_LANES_FORGOTTEN) && lane > 0) ||
        (is_chosen(LOCK_ON_MEDIA) && *lock_word(pool, lane) != 0))
        *live = (struct log_live){.newest = live->newest};
    if (is(SLOT_COMMIT_FORGOTTEN))
        live->of_slot_commit = false;
    if (is(OLD_BATCH_UNDONE))
        take_old_for_live(pool, lane, live);
    return result;
}

/* A visitor that takes what it finds in a slot for the old block. */
struct blind_visit {
    struct minl2r_pool *pool;
    log_visit_fn *visit;
    void *arg;
};

static void visit_blindly(void *arg, const struct pm_record *record,
                          const void *payload)
{
    const struct blind_visit *blind = arg;
    struct pm_swap swap;

    if (record->type != PM_SLOT) {
        blind->visit(blind->arg, record, payload);
        return;
    }
    memcpy(&swap, payload, sizeof(swap));
    swap.old_block = pm_load64(pool_at(blind->pool, record->target));
    blind->visit(blind->arg, record, &swap);
}

static void clear_log(struct minl2r_pool *pool, uint64_t offset)
{
    static const uint64_t none;
    struct minl2r_stats stats = {0};
    struct pm_phase phase = {.pm = &pool->pm, .stats = &stats};

    pm_store(&phase, pool_at(pool, offset), &none, sizeof(none));
}

/* The batches of a lane's log, as recovery asks for them: newest first. */
uint64_t __real_log_visit_batch(struct minl2r_pool *pool, uint64_t offset,
                                uint8_t *scratch, log_visit_fn *visit, void *arg);
uint64_t __wrap_log_visit_batch(struct minl2r_pool *pool, uint64_t offset,
                                uint8_t *scratch, log_visit_fn *visit, void *arg);
uint64_t __wrap_log_visit_batch(struct minl2r_pool *pool, uint64_t offset,
                                uint8_t *scratch, log_visit_fn *visit, void *arg)
{
    const struct pm_batch *batch = pool_at(pool, offset);
    uint64_t prev = batch->index > 0 ? batch->prev : 0;

    if (is(NEWEST_BATCH_NOT_UNDONE) && prev != 0)
        return prev;
    if (is(OLDEST_FIRST) && prev != 0) { /* of two */
        __real_log_visit_batch(pool, prev, scratch, visit, arg);
        __real_log_visit_batch(pool, offset, scratch, visit, arg);
        return 0;
    }
    if (is(LATER_SWAPS_IGNORED)) {
        struct blind_visit blind = {pool, visit, arg};

        return __real_log_visit_batch(pool, offset, scratch, visit_blindly, &blind);
    }
    __real_log_visit_batch(pool, offset, scratch, visit, arg);
    if (is(LOG_CLEARED_FIRST))
        clear_log(pool, offset);
    return is(UNDONE_FOR_EVER) ? offset : prev;
}
