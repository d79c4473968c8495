/* What the files of the helper share. Memory that cannot be had ends it: the agent reports that. */
#pragma once

#define _GNU_SOURCE
#include "CHost.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* sysexits.h: no memory for a request. */
static const int exit_memory = 71;

void *need(void *memory);
/* realloc(3) of `count` items. */
void *resize(void *memory, size_t count, size_t item);

/* Messages: a length of four bytes, then fields, each after its own length; the lowest byte first. Numbers are
   decimal text. */
typedef struct {
    uint8_t *body;
    char **fields;
    size_t *sizes;
    size_t count, next;
    /* The descriptors that came with it; -1 for none. */
    int files[2];
} Message;

/* Blocks. False when the other side has ended, or what it sends is unreadable. */
bool receive(int socket, Message *message);
/* Its memory, and the descriptors that nobody took. */
void release(Message *message);
/* The next field. A missing one makes `is_whole` false, and is empty. Ends with a NUL beyond its size. */
char *take(Message *message, bool *is_whole);
long long take_number(Message *message, bool *is_whole);
/* The next number as a count of fields that follow. */
size_t take_count(Message *message, bool *is_whole);

typedef struct {
    uint8_t *bytes;
    size_t size;
} Answer;

Answer begin_answer(void);
void add_bytes(Answer *answer, const void *bytes, size_t size);
void add_text(Answer *answer, const char *text);
void add_number(Answer *answer, long long number);
/* Sends it, and releases its memory. False when the other side has ended. */
bool send_answer(int socket, Answer *answer);

/* patterns.c */
bool has_places(const char *const *words);

/* programs.c */
void hear_commands(Message *message);
void allow_everything(void);
/* What to start, with the memory of its message. */
typedef struct {
    char **arguments, **environment;
    const char *program;
    long long niceness, largest, yields;
    /* Where it may write, below `base`; NULL for anywhere. */
    char *folder;
    const char *base;
} Order;
bool read_order(Message *message, Order *order);
void release_order(Order *order);
/* Why a new process did not become its program. */
typedef struct {
    const char *call;
    int code;
} Failure;
/* The new process; -1 with the failed `call` and errno. A `Failure` can be read from `told` once the process has
   ended; nothing where it became the program. */
pid_t start_program(const Order *order, const int files[2], int *told, const char **call);

/* confine.c */
int hold_writes(const char *folder, const char *base);
int hold_everything(void);

/* writers.c */
void answer_holders(int socket, Message *message);
void answer_users(int socket, Message *message);

/* reader.c: answers what files hold, until nobody asks any more. */
_Noreturn void read_files(int socket);
