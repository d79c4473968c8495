/* The programs that may be started, with their arguments. The agent names them once, before it can have been taken
   over. */
#include "host.h"

static const char *const input = "{in}", *const output = "{out}";

/* The next of the two in `text`; NULL without one. */
static const char *next_place(const char *text, size_t *length) {
    const char *in = strstr(text, input), *out = strstr(text, output);
    bool is_input = in && (!out || in < out);
    *length = strlen(is_input ? input : output);
    return is_input ? in : out;
}

/* Whether the path of that length is below `place`. In a shell's word a space starts another argument, so only the
   configured place may contain one. */
static bool is_below(const char *path, size_t length, const char *place) {
    size_t start = strlen(place);
    if (start == 0) return true;
    if (length < start || strncmp(path, place, start) != 0) return false;
    for (size_t begin = start, end; begin < length; begin = end + 1) {
        for (end = begin; end < length && path[end] != '/'; end++)
            if (path[end] == ' ') return false;
        if (end - begin == 2 && strncmp(path + begin, "..", 2) == 0) return false;
    }
    return true;
}

/* Whether a shell reads it as nothing but a path. */
static bool is_plain(const char *path, size_t length, const char *place) {
    if (!is_below(path, length, place)) return false;
    for (size_t byte = 0; byte < length; byte++) {
        unsigned char letter = (unsigned char)path[byte], low = letter | 0x20;
        bool is_word = (letter >= '0' && letter <= '9') || (low >= 'a' && low <= 'z') || letter > 0x7F;
        if (!is_word && !strchr("/._-+,=@%~ ", letter)) return false;
    }
    return true;
}

static bool matches_word(const char *word, const char *place, const char *argument) {
    size_t length;
    const char *next = next_place(word, &length), *rest = argument;
    if (!next) return strcmp(word, argument) == 0;
    if (strncmp(argument, word, (size_t)(next - word)) != 0) return false;
    bool begins_word = next == word;
    int places = 1;
    rest += next - word;
    word = next + length;
    for (; (next = next_place(word, &length)); word = next + length, places++) {
        if (next == word) continue;
        /* The place may contain the same text. */
        size_t known = strncmp(rest, place, strlen(place)) == 0 ? strlen(place) : 0;
        const char *found = memmem(rest + known, strlen(rest + known), word, (size_t)(next - word));
        if (!found || !is_plain(rest, (size_t)(found - rest), place)) return false;
        rest = found + (next - word);
    }
    size_t last = strlen(word), left = strlen(rest);
    if (left < last || strcmp(rest + left - last, word) != 0) return false;
    /* A path that is a whole word is safe with any characters; within a word, a shell may read it. */
    bool is_alone = places == 1 && begins_word && last == 0;
    return is_alone ? rest[0] == '/' && is_below(rest, left, place) : is_plain(rest, left - last, place);
}

static bool is_program(const char *word, const char *program) {
    if (strcmp(program, word) == 0) return true;
    const char *name = strrchr(program, '/');
    return !strchr(word, '/') && program[0] == '/' && strcmp(name + 1, word) == 0;
}

bool inlet_host_matches(const char *const *words, const char *place, const char *const *arguments) {
    if (!words[0] || !arguments[0] || !is_program(words[0], arguments[0])) return false;
    size_t word = 1;
    for (; words[word] && arguments[word]; word++)
        if (!matches_word(words[word], place, arguments[word])) return false;
    return !words[word] && !arguments[word];
}

bool has_places(const char *const *words) {
    size_t length;
    for (; *words; words++)
        if (next_place(*words, &length)) return true;
    return false;
}
