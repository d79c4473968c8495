/* Loaded before inlet (LD_PRELOAD), so that it keeps its code: what memory.py measures without the code's being given back.
 *
 *     cc -O2 -shared -fPIC -o keep_code.so keep_code.c
 *
 * Only madvise(MADV_DONTNEED) of executable segments does nothing; all other calls are as they were. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_code(struct dl_phdr_info *info, size_t size, void *address) {
    (void)size;
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[at];
        uintptr_t start = (info->dlpi_addr + segment->p_vaddr) & ~(uintptr_t)4095;
        uintptr_t end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X && (uintptr_t)address >= start && (uintptr_t)address < end)
            return 1;
    }
    return 0;
}

int madvise(void *address, size_t length, int advice) {
    if (advice == MADV_DONTNEED && dl_iterate_phdr(is_code, address)) return 0;
    return (int)syscall(SYS_madvise, address, length, advice);
}
