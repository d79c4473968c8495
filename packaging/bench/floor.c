/* The floor of small files: what libcurl's multi interface alone costs. Puts every file of a folder, eight at a time, and
 * signs, hashes, journals and checks nothing.
 *
 *     cc -O2 -o floor floor.c -lcurl
 *     ./floor FOLDER URL [CA-FILE]
 */
#include <curl/curl.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* `LARGEST` is where a file counts as big: those are not for this program. */
enum { LANES = 8, LARGEST = 4 << 20 };

static size_t drop(char *answer, size_t size, size_t count, void *unused) {
    return (void)answer, (void)unused, size * count;
}

/* Gives a lane the next file of the folder; 0 when there is none. */
static int next(CURLM *all, CURL *lane, DIR *folder, const char *url) {
    static char body[LARGEST], address[1024];
    struct dirent *entry;
    do entry = readdir(folder);
    while (entry && entry->d_name[0] == '.');
    int file = entry ? openat(dirfd(folder), entry->d_name, O_RDONLY) : -1;
    if (file < 0) return 0;
    ssize_t size = read(file, body, sizeof body);
    close(file);
    snprintf(address, sizeof address, "%s/%s", url, entry->d_name);
    curl_easy_setopt(lane, CURLOPT_URL, address);
    curl_easy_setopt(lane, CURLOPT_POSTFIELDSIZE, (long)size);
    /* Head and body leave in one call. */
    return size >= 0 && !curl_easy_setopt(lane, CURLOPT_COPYPOSTFIELDS, body) && !curl_multi_add_handle(all, lane);
}

int main(int count, char **words) {
    DIR *folder = count > 2 ? opendir(words[1]) : NULL;
    CURLM *all = curl_multi_init();
    int going = 0, left;
    if (!folder) return fprintf(stderr, "floor FOLDER URL [CA-FILE]: there is no such folder\n"), 64;
    for (int number = 0; number < LANES; number++) {
        CURL *lane = curl_easy_init();
        curl_easy_setopt(lane, CURLOPT_CUSTOMREQUEST, "PUT");
        curl_easy_setopt(lane, CURLOPT_HTTPHEADER, curl_slist_append(NULL, "Expect:"));
        curl_easy_setopt(lane, CURLOPT_FAILONERROR, 1L);
        curl_easy_setopt(lane, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(lane, CURLOPT_WRITEFUNCTION, drop);
        if (count > 3) curl_easy_setopt(lane, CURLOPT_CAINFO, words[3]);
        going += next(all, lane, folder, words[2]);
    }
    while (going) {
        int begun = 0;
        curl_multi_perform(all, &left);
        for (CURLMsg *ended; (ended = curl_multi_info_read(all, &left)); going--) {
            CURL *lane = ended->easy_handle;
            CURLcode code = ended->data.result;
            if (code) return fprintf(stderr, "floor: %s\n", curl_easy_strerror(code)), 1;
            curl_multi_remove_handle(all, lane);
            begun += next(all, lane, folder, words[2]);
        }
        going += begun;
        /* What has just begun is not to wait. */
        if (going && !begun) curl_multi_poll(all, NULL, 0, 1000, NULL);
    }
    return 0;
}
