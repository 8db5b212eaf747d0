/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * acl.h - POSIX access control lists, as they are the values of two attributes (the
 * kernel's linux/posix_acl_xattr.h). The kernel decides by them who may do what; here
 * they are kept in step with the permission bits, and given to what is made in a
 * directory.
 */
#ifndef PMFS_ACL_H
#define PMFS_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACL_ACCESS "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

/* Is it one? It has an owner, a group, others, and a mask if it names anybody. */
bool acl_is_valid(const void *acl, size_t size);

/* Does it say no more than permission bits can? The following are for valid ones. */
bool acl_is_minimal(const void *acl, size_t size);

/* `mode` with the permission bits that the list stands for. */
uint32_t acl_to_mode(const void *acl, size_t size, uint32_t mode);

/* The list follows the permission bits of `mode`. */
void acl_from_mode(void *acl, size_t size, uint32_t mode);

/* Of a directory's default list, makes the one of what is made in it with `mode`; the
 * answer is the mode that it has then. */
uint32_t acl_inherit(void *acl, size_t size, uint32_t mode);

#endif
