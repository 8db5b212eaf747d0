/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target on the inputs in folders, without a fuzzer. */
#include <dirent.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define INPUT_SIZE_MAX 65536
#define HANG_S 60

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_file(const char *path)
{
    static uint8_t bytes[INPUT_SIZE_MAX];
    FILE *file = fopen(path, "re");

    if (!file)
        err(1, "%s", path);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    uint8_t *input = malloc(size + 1); /* its end is where a sanitizer sees it */
    if (!input)
        err(1, "%s", path);
    for (size_t i = 0; i < size; i++)
        input[i] = bytes[i];
    alarm(HANG_S);
    if (LLVMFuzzerTestOneInput(input, size) != 0)
        errx(1, "%s: refused", path);
    free(input);
}

static unsigned run_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    char path[4096];
    unsigned count = 0;

    if (!dir)
        err(1, "%s", folder);
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        /* Who crashes is the one named last. */
        fprintf(stderr, "%s\n", path);
        run_file(path);
        count++;
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    unsigned count = 0;

    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        count += run_folder(argv[i]);
    printf("%u inputs\n", count);
    return count > 0 ? 0 : 1;
}
