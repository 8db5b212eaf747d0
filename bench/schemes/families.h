/* SPDX-License-Identifier: BSD-3-Clause */
/* families.h - the schemes, by the source file that has them. */
#ifndef BENCH_FAMILIES_H
#define BENCH_FAMILIES_H

#include "bench/schemes/scheme.h"

/* in_place.c */
extern const struct scheme scheme_none;

/* minl2r.c */
extern const struct scheme scheme_minl2r, scheme_minl2r_data, scheme_minl2r_ptr,
    scheme_minl2r_auto;

/* shadow.c */
extern const struct scheme scheme_bpfs_ordered, scheme_bpfs_durable, scheme_sp;

/* sjfs.c */
extern const struct scheme scheme_sjfs_eager, scheme_sjfs_lazy;

/* journal.c */
extern const struct scheme scheme_journal, scheme_ordered;

#endif
