/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/tools/console.h"
#include "libminl2r/tools/fault.h"
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
        "not be opened, the command not be done, or its output not be written.\n");
}

static void print_help(const struct command *command)
{
    printf("Usage: minl2r %s [OPTION ...] POOL\n\n%s.\n\n%s"
           "  --json                JSON on standard output\n"
           "  --help                this text\n",
           command->name, command->summary, command->help);
}

static int hint(void)
{
    fprintf(stderr, "Try: %s --help\n", tool_name);
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

    if (error)
        console_fail(tool_name, path, error->valuestring);
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
            return hint();
    }
    if (argc - optind != 1) {
        fprintf(stderr, "%s: one pool has to be named\n", tool_name);
        return hint();
    }
    return run(command, argv[optind], json);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    return NULL;
}

static int refuse(const char *command)
{
    if (!command) {
        print_usage(stderr);
        return TOOL_USAGE;
    }
    fprintf(stderr, "minl2r: no command '%s'\n", command);
    return hint();
}

/* What getopt() says begins as what the tool says: "minl2r info: ". */
static int run_command(const struct command *command, int argc, char **argv)
{
    snprintf(tool_name, sizeof(tool_name), "minl2r %s", command->name);
    argv[0] = tool_name;
    fault_explain(tool_name, TOOL_FAILED);
    return parse_and_run(command, argc, argv);
}

static int run_words(int argc, char **argv)
{
    const struct command *command = argc >= 2 ? find_command(argv[1]) : NULL;

    if (command)
        return run_command(command, argc - 1, argv + 1);
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0))
        print_usage(stdout);
    else if (argc >= 2 && strcmp(argv[1], "--version") == 0)
        printf("minl2r %d.%d\n", MINL2R_MAJOR, MINL2R_MINOR);
    else
        return refuse(argv[1]);
    return TOOL_OK;
}

int main(int argc, char **argv)
{
    console_guard();
    int status = run_words(argc, argv);

    return console_finish(tool_name, status, TOOL_FAILED);
}
