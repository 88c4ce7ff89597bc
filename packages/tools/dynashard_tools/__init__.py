"""The command line: `dynashard`.

A folder for each command, or for some that belong together, has its `command.py`: the options, and what is printed. A
folder may use what another one has for all, such as `reshard.scopes`. The modules of this folder are what several use:

    cli             the entry point: chooses the commands of this place, and prints an error as one line
    commands, own, outside
                    the commands for a backend, for a program's own tables, and for neither
    catalog         all commands with their summaries, which help lists without importing them
    app             what the three have in common: a command is imported when it is called
    connection      `Backend`: what commands work on: the local stack, a deployed environment, or a program's tables
    environments    deployed environments: region, account, clients of AWS's services, and errors of them
    program         the program that `DYNASHARD_DB` names
    entities        entities and logical partitions by their names on the command line
    options         arguments and options
    failure         errors that end a command, and exit statuses
    interrupts      keeps Ctrl-C from being lost
    left_out        stored items that do not fit: named, and the status of the command
    printing        summaries as lines or JSON, tables, times
    progress        what long work shows, and what it consumes
    files           files that are written completely or not at all
    latest_metrics  values of CloudWatch
    version         the version of the distributions
"""
