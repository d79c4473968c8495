import CLinux
import Glibc
import SystemPackage

/// Keeps the process small on machines that have little: a NAS counts resident pages, whoever owns them.
package enum ProcessMemory {
    /// Makes the C heap give memory back: four arenas however many threads there are, and buffers of 64 KiB and more
    /// mapped by themselves, so that they leave when they are freed (mallopt(3)). Call it before the first thread starts.
    package static func boundHeap() {
        mallopt(M_ARENA_MAX, 4)
        mallopt(M_MMAP_THRESHOLD, 64 << 10)
        mallopt(M_TRIM_THRESHOLD, 256 << 10)
    }

    /// Unmaps all code; what is used comes back from the page cache at once. Relocation and the runtime's look-ups touch
    /// most of a static program once, as do the first deliveries, and the kernel maps 64 KiB around each touch: of 18 MiB
    /// that are mapped then, not 3 are run again. Takes some milliseconds.
    ///
    /// Only executable mappings of files: they are never written to, so the kernel drops nothing that it cannot read
    /// again (madvise(2), MADV_DONTNEED).
    package static func releaseColdCode() {
        guard let bytes = try? DurableFile.read("/proc/self/maps", limit: 1 << 20) else { return }
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: true)
            guard fields.count >= 6, fields[1].elementsEqual("r-xp".utf8), fields[5].first == UInt8(ascii: "/")
            else { continue }
            let bounds = String(decoding: fields[0], as: UTF8.self).split(separator: "-")
            guard bounds.count == 2, let start = UInt(bounds[0], radix: 16), let end = UInt(bounds[1], radix: 16),
                let address = UnsafeMutableRawPointer(bitPattern: start)
            else { continue }
            madvise(address, Int(end - start), MADV_DONTNEED)
        }
    }
}
