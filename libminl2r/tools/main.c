/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/tools/tool.h"

#define OPTION_JSON 1000
#define OPTION_HELP 1001
#define OPTIONS_MAX 16

static const struct command *const commands[] = {
    &command_create,  &command_info, &command_check,
    &command_recover, &command_dump, &command_stats,
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *file)
{
    fprintf(file, "Usage: minl2r COMMAND [OPTION ...] POOL\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(file, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(
        file,
        "\n"
        "  minl2r COMMAND --help   the command's options\n"
        "  minl2r --version        the version\n\n"
        "Exit status: 0 done; 1 the pool is damaged; 2 wrong usage; 3 the pool could\n"
        "not be opened, or the command not be done.\n");
}

static void print_help(const struct command *command)
{
    printf("Usage: minl2r %s [OPTION ...] POOL\n\n%s.\n\n%s"
           "  --json                JSON on standard output\n"
           "  --help                this text\n",
           command->name, command->summary, command->help);
}

static int hint(const struct command *command)
{
    fprintf(stderr, "Try: minl2r %s --help\n", command->name);
    return TOOL_USAGE;
}

/* The command's own options and those of all. */
static void merge_options(const struct command *command, struct option *merged)
{
    static const struct option common[] = {
        {"json", no_argument, NULL, OPTION_JSON},
        {"help", no_argument, NULL, OPTION_HELP},
        {0},
    };
    size_t count = 0;

    for (const struct option *own = command->options; own && own->name; own++)
        merged[count++] = *own;
    memcpy(merged + count, common, sizeof(common));
}

static int run(const struct command *command, const char *path, bool json)
{
    cJSON *out = cJSON_CreateObject();

    cJSON_AddStringToObject(out, "path", path);
    enum tool_exit result = command->run(path, out);
    const cJSON *error = cJSON_GetObjectItem(out, "error");

    if (error && strstr(error->valuestring, path))
        fprintf(stderr, "minl2r %s: %s\n", command->name, error->valuestring);
    else if (error)
        fprintf(stderr, "minl2r %s: %s: %s\n", command->name, path, error->valuestring);
    tool_print(out, json);
    cJSON_Delete(out);
    return (int)result;
}

static int parse_and_run(const struct command *command, int argc, char **argv)
{
    struct option options[OPTIONS_MAX];
    bool json = false;
    int option;

    merge_options(command, options);
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == OPTION_HELP) {
            print_help(command);
            return TOOL_OK;
        }
        if (option == OPTION_JSON)
            json = true;
        else if (option == '?' || !command->set(option, optarg))
            return hint(command);
    }
    if (argc - optind != 1) {
        fprintf(stderr, "minl2r %s: one pool has to be named\n", command->name);
        return hint(command);
    }
    return run(command, argv[optind], json);
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        printf("minl2r %d.%d\n", MINL2R_MAJOR, MINL2R_MINOR);
        return TOOL_OK;
    }
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        print_usage(stdout);
        return TOOL_OK;
    }
    for (size_t i = 0; argc >= 2 && i < COMMAND_COUNT; i++)
        if (strcmp(argv[1], commands[i]->name) == 0)
            return parse_and_run(commands[i], argc - 1, argv + 1);
    print_usage(stderr);
    return TOOL_USAGE;
}
