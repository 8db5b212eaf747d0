/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/pmfs_random.h"

#include <string.h>

#include "crashtest/workloads/pmfs_cover.h"
#include "crashtest/workloads/pmfs_run.h"

#define CAMPAIGN_LENGTH 256
#define KEPT_MAX 128
#define LENGTH_MAX 8

struct campaign {
    uint64_t random;
    struct pmfs_script kept[KEPT_MAX]; /* they have seen something new */
    size_t kept_count;
};

static uint32_t below(struct campaign *campaign, size_t limit)
{
    campaign->random = campaign->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((campaign->random >> 33) % limit);
}

static const struct op *some_op(struct campaign *campaign)
{
    return &ops[below(campaign, op_count)];
}

static void begin_script(struct campaign *campaign, struct pmfs_script *script)
{
    *script = (struct pmfs_script){
        .image = &scene_images[below(campaign, scene_image_count)],
        .op_count = 1 + below(campaign, 3),
    };
    for (size_t i = 0; i < script->op_count; i++)
        script->ops[i] = some_op(campaign);
}

static void insert(struct campaign *campaign, struct pmfs_script *script, size_t at)
{
    memmove(&script->ops[at + 1], &script->ops[at],
            (script->op_count - at) * sizeof(const struct op *));
    script->ops[at] = some_op(campaign);
    script->op_count++;
}

static void change_script(struct campaign *campaign, struct pmfs_script *script)
{
    *script = campaign->kept[below(campaign, campaign->kept_count)];
    switch (below(campaign, 5)) {
    case 0:
        script->ops[below(campaign, script->op_count)] = some_op(campaign);
        return;
    case 1:
        if (script->op_count < LENGTH_MAX)
            insert(campaign, script, below(campaign, script->op_count));
        return;
    case 2:
        script->image = &scene_images[below(campaign, scene_image_count)];
        return;
    default: /* what was last before was crashed: now what follows it is */
        if (script->op_count < LENGTH_MAX)
            insert(campaign, script, script->op_count);
    }
}

static void next_script(struct campaign *campaign, struct pmfs_script *script)
{
    if (campaign->kept_count == 0 || below(campaign, 4) == 0)
        begin_script(campaign, script);
    else
        change_script(campaign, script);
}

/* The newest take the places of older ones. */
static void keep(struct campaign *campaign, const struct pmfs_script *script)
{
    size_t place = campaign->kept_count < KEPT_MAX ? campaign->kept_count++
                                                   : below(campaign, KEPT_MAX);

    campaign->kept[place] = *script;
}

size_t random_campaigns(uint64_t sequences)
{
    return (size_t)((sequences + CAMPAIGN_LENGTH - 1) / CAMPAIGN_LENGTH);
}

enum suite_result random_campaign(uint64_t sequences, uint64_t seed, size_t number,
                                  struct suite *suite, char *error)
{
    struct campaign campaign = {.random = seed * 0x9e3779b97f4a7c15u + number};
    uint64_t left = sequences - (uint64_t)number * CAMPAIGN_LENGTH;
    enum suite_result worst = SUITE_PASSED;
    struct pmfs_script script;

    cover_begin();
    for (unsigned i = 0; i < CAMPAIGN_LENGTH && i < left; i++) {
        uint64_t before = cover_count();

        next_script(&campaign, &script);
        enum suite_result result = pmfs_test(&script, suite, error);

        if (result == SUITE_NOT_TESTED)
            return result;
        worst = result == SUITE_FAILED ? result : worst;
        if (cover_count() > before)
            keep(&campaign, &script);
    }
    return worst;
}
