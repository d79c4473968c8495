#pragma once

#include <libexif/exif-data.h>
#include <libexif/exif-mem.h>
#include <stdlib.h>

/* libexif copies every field it meets, of any length that fits into the input, as often as the input repeats it. Dates
   have 20 bytes, so that larger blocks (thumbnails, most maker notes) are refused: it then leaves the field out. */
enum { inlet_exif_block_limit = 4096 };

static inline void *_Nullable inlet_exif_alloc(ExifLong size) {
    return size > inlet_exif_block_limit ? NULL : calloc(1, size);
}

static inline void *_Nullable inlet_exif_realloc(void *_Nullable block, ExifLong size) {
    return size > inlet_exif_block_limit ? NULL : realloc(block, size);
}

/* In C because function pointers with ExifLong (32 bits) and free() of the same allocator belong together. */
static inline ExifData *_Nullable inlet_exif_parse(const unsigned char *_Nonnull bytes, unsigned int count) {
    ExifMem *memory = exif_mem_new(inlet_exif_alloc, inlet_exif_realloc, free);
    if (!memory) return NULL;
    ExifData *data = exif_data_new_mem(memory);
    exif_mem_unref(memory);
    if (!data) return NULL;
    /* The first adds and removes fields to please the standard, where only what the file says counts; the second drops
       dates in a directory that is not theirs, where some raw formats have them. */
    exif_data_unset_option(data, EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
    exif_data_unset_option(data, EXIF_DATA_OPTION_IGNORE_UNKNOWN_TAGS);
    exif_data_load_data(data, bytes, count);
    return data;
}

/* A field of any directory but the thumbnail's; Swift sees `ifd` as a tuple. */
static inline ExifEntry *_Nullable inlet_exif_entry(const ExifData *_Nonnull data, ExifTag tag) {
    static const ExifIfd places[] = { EXIF_IFD_EXIF, EXIF_IFD_0 };
    for (unsigned int place = 0; place < sizeof places / sizeof *places; place++) {
        ExifContent *content = data->ifd[places[place]];
        ExifEntry *entry = content ? exif_content_get_entry(content, tag) : NULL;
        if (entry) return entry;
    }
    return NULL;
}
