import Glibc

extension SourceFile {
    /// Whether next to nothing of the range is in the page cache: up to a sixteenth may be there from reading ahead.
    ///
    /// Asks mincore(2), which reads nothing and moves nothing within the cache. It tells those who own the file or may write
    /// to it (Linux 5.2), and others that all is there; so does this, as where it cannot be known.
    package func isUncached(offset: Int64, length: Int64) -> Bool {
        let page = Int64(sysconf(Int32(_SC_PAGESIZE)))
        let start = offset / page * page
        let (size, pages) = (Int(offset + length - start), Int((offset + length - start + page - 1) / page))
        guard size > 0, let place = mmap(nil, size, PROT_READ, MAP_SHARED, descriptor.number, off_t(start)),
            place != MAP_FAILED
        else { return false }
        defer { munmap(place, size) }
        var present = [UInt8](repeating: 0, count: pages)
        guard mincore(place, size, &present) == 0 else { return false }
        return present.count { $0 & 1 == 1 } <= pages / 16
    }
}
