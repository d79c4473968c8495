#include "host.h"

/* The largest message: a question about some ten thousand files. */
static const size_t most = 16 << 20;

void *need(void *memory) {
    if (!memory) _exit(exit_memory);
    return memory;
}

void *resize(void *memory, size_t count, size_t item) {
    return need(reallocarray(memory, count > 0 ? count : 1, item));
}

static size_t length_at(const uint8_t *bytes) {
    return (size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 24;
}

long inlet_host_count_fields(const uint8_t *body, size_t size) {
    long count = 0;
    for (size_t place = 0; place < size; count++) {
        if (size - place < 4 || length_at(body + place) > size - place - 4) return -1;
        place += 4 + length_at(body + place);
    }
    return count;
}

/* Reads all of `size` bytes, and up to two descriptors that come with the first; the kernel closes any later ones. */
static bool read_all(int socket, uint8_t *bytes, size_t size, int *files) {
    union {
        char room[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr aligned;
    } control;
    for (size_t filled = 0; filled < size;) {
        struct iovec part = {bytes + filled, size - filled};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        if (files && filled == 0) (message.msg_control = control.room, message.msg_controllen = sizeof control.room);
        ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        if (head && head->cmsg_type == SCM_RIGHTS)
            memcpy(files, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
        filled += (size_t)count;
    }
    return true;
}

bool receive(int socket, Message *message) {
    uint8_t head[4];
    *message = (Message){.files = {-1, -1}};
    if (!read_all(socket, head, sizeof head, message->files)) return false;
    size_t size = length_at(head);
    if (size > most) return false;
    message->body = resize(NULL, size + 1, 1);
    if (!read_all(socket, message->body, size, NULL)) return false;
    long count = inlet_host_count_fields(message->body, size);
    if (count < 0) return false;
    message->count = (size_t)count;
    message->fields = resize(NULL, message->count, sizeof *message->fields);
    message->sizes = resize(NULL, message->count, sizeof *message->sizes);
    uint8_t *place = message->body;
    for (size_t field = 0; field < message->count; field++) {
        message->sizes[field] = length_at(place);
        message->fields[field] = (char *)place + 4;
        place += 4 + message->sizes[field];
    }
    /* A field ends where the next one's length was. */
    for (size_t field = 0; field < message->count; field++) message->fields[field][message->sizes[field]] = 0;
    return true;
}

void release(Message *message) {
    for (int file = 0; file < 2; file++)
        if (message->files[file] >= 0) close(message->files[file]);
    free(message->body);
    free(message->fields);
    free(message->sizes);
}

char *take(Message *message, bool *is_whole) {
    static char none[1];
    if (message->next < message->count) return message->fields[message->next++];
    *is_whole = false;
    return none;
}

long long take_number(Message *message, bool *is_whole) {
    char *end, *text = take(message, is_whole);
    errno = 0;
    /* Inodes and devices use all 64 bits. */
    long long number = *text == '-' ? strtoll(text, &end, 10) : (long long)strtoull(text, &end, 10);
    if (end == text || *end != 0 || errno != 0) *is_whole = false;
    return number;
}

size_t take_count(Message *message, bool *is_whole) {
    long long number = take_number(message, is_whole);
    if (number >= 0 && (unsigned long long)number <= message->count - message->next) return (size_t)number;
    *is_whole = false;
    return 0;
}

Answer begin_answer(void) { return (Answer){need(calloc(4, 1)), 4}; }

static void put_length(uint8_t *place, size_t length) {
    for (int byte = 0; byte < 4; byte++) place[byte] = (uint8_t)(length >> 8 * byte);
}

void add_bytes(Answer *answer, const void *bytes, size_t size) {
    answer->bytes = resize(answer->bytes, answer->size + 4 + size, 1);
    put_length(answer->bytes + answer->size, size);
    if (size > 0) memcpy(answer->bytes + answer->size + 4, bytes, size);
    answer->size += 4 + size;
}

void add_text(Answer *answer, const char *text) { add_bytes(answer, text, strlen(text)); }

void add_number(Answer *answer, long long number) {
    char text[24];
    snprintf(text, sizeof text, "%lld", number);
    add_text(answer, text);
}

bool send_answer(int socket, Answer *answer) {
    put_length(answer->bytes, answer->size - 4);
    size_t sent = 0;
    while (sent < answer->size) {
        ssize_t count = write(socket, answer->bytes + sent, answer->size - sent);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        sent += (size_t)count;
    }
    bool is_sent = sent == answer->size;
    free(answer->bytes);
    return is_sent;
}
