/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/acl.h"

#include <string.h>

#define VERSION 2u

enum tag {
    TAG_OWNER = 0x01,
    TAG_USER = 0x02,
    TAG_OWNING_GROUP = 0x04,
    TAG_GROUP = 0x08,
    TAG_MASK = 0x10,
    TAG_OTHER = 0x20,
};

/* Little endian, in this order. */
struct entry {
    uint16_t tag;
    uint16_t perm;
    uint32_t id;
};

#define HEADER_SIZE sizeof(uint32_t)

static size_t count_of(size_t size)
{
    return (size - HEADER_SIZE) / sizeof(struct entry);
}

static struct entry entry_at(const void *acl, size_t number)
{
    struct entry entry;

    memcpy(&entry, (const uint8_t *)acl + HEADER_SIZE + number * sizeof(entry),
           sizeof(entry));
    return entry;
}

static void set_perm(void *acl, size_t number, uint32_t perm)
{
    struct entry entry = entry_at(acl, number);

    entry.perm = (uint16_t)(perm & 7);
    memcpy((uint8_t *)acl + HEADER_SIZE + number * sizeof(entry), &entry,
           sizeof(entry));
}

/*
 * The tags of all entries; 0 if one is none, comes again though it may not, or comes
 * before its place: who looks an entry up takes the first that fits.
 */
static uint32_t tags_of(const void *acl, size_t size)
{
    const uint32_t many = TAG_USER | TAG_GROUP;
    uint32_t tags = 0;

    for (size_t i = 0; i < count_of(size); i++) {
        struct entry entry = entry_at(acl, i);
        uint32_t tag = entry.tag;

        if (tag == 0 || tag & (tag - 1) || tag > TAG_OTHER || entry.perm > 7 ||
            tags >= tag << 1 || (tags & tag && !(tag & many)))
            return 0;
        tags |= tag;
    }
    return tags;
}

bool acl_is_valid(const void *acl, size_t size)
{
    const uint32_t needed = TAG_OWNER | TAG_OWNING_GROUP | TAG_OTHER;
    uint32_t version, tags;

    if (size < HEADER_SIZE || (size - HEADER_SIZE) % sizeof(struct entry))
        return false;
    memcpy(&version, acl, sizeof(version));
    tags = tags_of(acl, size);
    if (version != VERSION || (tags & needed) != needed)
        return false;
    return !(tags & (TAG_USER | TAG_GROUP)) || tags & TAG_MASK;
}

bool acl_is_minimal(const void *acl, size_t size)
{
    return count_of(size) == 3 && !(tags_of(acl, size) & TAG_MASK);
}

/* By how many bits an entry's permissions are shifted in a mode; less than 0: they are
 * not in it. The mask, where there is one, stands for the group. */
static int shift_of(uint32_t tag, bool has_mask)
{
    switch (tag) {
    case TAG_OWNER:
        return 6;
    case TAG_OWNING_GROUP:
        return has_mask ? -1 : 3;
    case TAG_MASK:
        return 3;
    case TAG_OTHER:
        return 0;
    default:
        return -1;
    }
}

uint32_t acl_to_mode(const void *acl, size_t size, uint32_t mode)
{
    bool has_mask = tags_of(acl, size) & TAG_MASK;

    mode &= ~(uint32_t)0777;
    for (size_t i = 0; i < count_of(size); i++) {
        struct entry entry = entry_at(acl, i);
        int shift = shift_of(entry.tag, has_mask);

        if (shift >= 0)
            mode |= (uint32_t)entry.perm << shift;
    }
    return mode;
}

void acl_from_mode(void *acl, size_t size, uint32_t mode)
{
    bool has_mask = tags_of(acl, size) & TAG_MASK;

    for (size_t i = 0; i < count_of(size); i++) {
        int shift = shift_of(entry_at(acl, i).tag, has_mask);

        if (shift >= 0)
            set_perm(acl, i, mode >> shift);
    }
}

uint32_t acl_inherit(void *acl, size_t size, uint32_t mode)
{
    mode &= acl_to_mode(acl, size, ~(uint32_t)0);
    acl_from_mode(acl, size, mode);
    return mode;
}
