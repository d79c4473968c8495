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
    package static func releaseColdCode() {
        guard let bytes = try? DurableFile.read("/proc/self/smaps", limit: 8 << 20) else { return }
        for range in unwrittenCode(bytes) {
            guard let address = UnsafeMutableRawPointer(bitPattern: range.lowerBound) else { continue }
            madvise(address, range.count, MADV_DONTNEED)
        }
    }

    /// The executable mappings of files of which no page differs from its file: only these can be read again (madvise(2),
    /// MADV_DONTNEED). Where the loader relocated code, or a debugger or a probe has put a breakpoint, there is a page of the
    /// process's own, which `Anonymous` counts, or `Swap` (proc_pid_smaps(5)); where a kernel counts none, nothing is given
    /// back.
    static func unwrittenCode(_ smaps: [UInt8]) -> [Range<UInt>] {
        var found: [Range<UInt>] = []
        var code: Range<UInt>?
        var (isCounted, isWritten) = (false, false)
        func end() { if let code, isCounted, !isWritten { found.append(code) } }
        for line in smaps.split(separator: UInt8(ascii: "\n")) {
            if line.first.map({ (0x41...0x5A).contains($0) }) ?? true {
                let counts = line.starts(with: "Anonymous:".utf8)
                isCounted = isCounted || counts
                guard counts || line.starts(with: "Swap:".utf8) else { continue }
                isWritten = isWritten || line.contains { (0x31...0x39).contains($0) }
            } else {
                end()
                (code, isCounted, isWritten) = (codeOfFile(line), false, false)
            }
        }
        end()
        return found
    }

    /// The addresses in the first line of a mapping, `5600-5700 r-xp 00001000 08:01 42   /usr/bin/inlet`; nil for others.
    private static func codeOfFile(_ line: ArraySlice<UInt8>) -> Range<UInt>? {
        let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: true)
        guard fields.count >= 6, fields[1].elementsEqual("r-xp".utf8), fields[5].first == UInt8(ascii: "/")
        else { return nil }
        let bounds = String(decoding: fields[0], as: UTF8.self).split(separator: "-")
        guard bounds.count == 2, let start = UInt(bounds[0], radix: 16), let end = UInt(bounds[1], radix: 16),
            start < end
        else { return nil }
        return start..<end
    }
}
