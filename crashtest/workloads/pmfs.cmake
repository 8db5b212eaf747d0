# SPDX-License-Identifier: BSD-3-Clause
# The workload of pmfs: its core with hooks, the same sources as in the library, and what
# runs them. Sets pmfs_sources (without hooks), pmfs_objects (with) and pmfs_wrapped.
set(pmfs_sources
    pmfs.c
    pmfs_cover.c
    pmfs_ops.c
    pmfs_random.c
    pmfs_run.c
    pmfs_scene.c
    pmfs_tree.c)
set(pmfs_wrapped
    change_drop_privileges
    dir_add dir_pass_on dir_remove dir_replace
    fs_attach fs_end fs_now_ns getrandom
    inode_attr inode_check inode_lock inode_set_head inode_set_nlink inode_set_parent
    inode_set_state inode_unlock
    linear_convert
    map_free
    minl2r_tx_begin minl2r_tx_free minl2r_tx_write minl2r_tx_write_block
    minl2r_tx_write_fresh
    orphan_recover
    pmfs_rename_whiteout
    pthread_rwlock_rdlock pthread_rwlock_wrlock
    spin_wait
    table_attach table_next_unfinished
    trie_clear trie_join trie_plant
    view_mark_allocated)

get_target_property(pmfs_core_sources pmfs_core SOURCES)
list(TRANSFORM pmfs_core_sources PREPEND ${PROJECT_SOURCE_DIR}/pmfs-proto/core/)
set(pmfs_objects)
foreach(source ${pmfs_core_sources} pmfs_mutants.c)
    # So that a repair of few blocks takes several transactions.
    add_hooked_object(pmfs_objects pmfs ${source} -DBLOCKS_PER_TX=32u)
endforeach()
