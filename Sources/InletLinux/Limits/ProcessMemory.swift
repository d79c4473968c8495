import CLinux
import Glibc
import InletCore
import SystemPackage

/// Keeps the process small on machines that have little: a NAS counts resident pages, whoever owns them.
package enum ProcessMemory {
    /// Makes the C heap return memory: four arenas however many threads there are, and buffers of 64 KiB and more
    /// mapped separately, so that freeing them returns them (mallopt(3)). Call it before the first thread starts.
    package static func boundHeap() {
        mallopt(M_ARENA_MAX, 4)
        mallopt(M_MMAP_THRESHOLD, 64 << 10)
        mallopt(M_TRIM_THRESHOLD, 256 << 10)
    }

    /// Unmaps all code and constants, whose used pages come back from the page cache at once, and returns the heap's
    /// free memory. Relocation, the runtime's look-ups and the first deliveries touch most of a static program once.
    /// The kernel maps 64 KiB around each touch: of 18 MiB mapped then, less than 3 run again. Takes some milliseconds.
    package static func releaseColdPages() {
        guard let bytes = DurableFile.readIfPossible("/proc/self/smaps", limit: 8 << 20) else { return }
        for range in unwrittenPages(bytes) {
            guard let address = UnsafeMutableRawPointer(bitPattern: range.lowerBound) else { continue }
            madvise(address, range.count, MADV_DONTNEED)
        }
        malloc_trim(0)
    }

    private typealias Mapping = (
        addresses: Range<UInt>, file: ArraySlice<UInt8>, isCode: Bool, isCounted: Bool, isWritten: Bool
    )

    /// The mappings of programs and libraries, code and constants, whose pages all equal their file: only these can be
    /// read again (madvise(2), MADV_DONTNEED). A page that the loader relocated, or in which a debugger set a
    /// breakpoint, belongs to the process: `Anonymous` or `Swap` counts it (proc_pid_smaps(5)). Where a kernel counts
    /// neither, nothing is returned. Other files are left alone: they may be unmapped and replaced at this moment.
    static func unwrittenPages(_ smaps: [UInt8]) -> [Range<UInt>] {
        var mappings: [Mapping] = []
        var isOfFile = false
        eachLine(of: smaps) { line in
            guard let first = line.first else { return }
            if (0x41...0x5A).contains(first) {
                guard isOfFile, let last = mappings.indices.last else { return }
                let counts = begins(line, "Anonymous:")
                mappings[last].isCounted = mappings[last].isCounted || counts
                guard counts || begins(line, "Swap:") else { return }
                mappings[last].isWritten = mappings[last].isWritten || line.contains { (0x31...0x39).contains($0) }
            } else {
                let mapping = mapping(smaps[line.startIndex..<line.endIndex])
                isOfFile = mapping != nil
                if let mapping { mappings.append(mapping) }
            }
        }
        let programs = Set(mappings.filter(\.isCode).map(\.file))
        return mappings.filter { $0.isCounted && !$0.isWritten && programs.contains($0.file) }.map(\.addresses)
    }

    /// Three of a mapping's 25 lines matter: C finds their ends.
    private static func eachLine(of text: [UInt8], _ body: (Slice<UnsafeRawBufferPointer>) -> Void) {
        text.withUnsafeBytes { bytes in
            var start = 0
            while start < bytes.count, let base = bytes.baseAddress {
                let end = memchr(base + start, 0x0A, bytes.count - start).map { UnsafeRawPointer($0) - base }
                body(bytes[start..<(end ?? bytes.count)])
                start = (end ?? bytes.count) + 1
            }
        }
    }

    private static func begins(_ line: Slice<UnsafeRawBufferPointer>, _ word: StaticString) -> Bool {
        guard line.count >= word.utf8CodeUnitCount, let start = line.base.baseAddress else { return false }
        return memcmp(start + line.startIndex, word.utf8Start, word.utf8CodeUnitCount) == 0
    }

    /// What the first line of a mapping says, `5600-5700 r-xp 00001000 08:01 42   /usr/bin/inlet`; nil for what is no file, or
    /// can be written to.
    private static func mapping(_ line: ArraySlice<UInt8>) -> Mapping? {
        let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5, omittingEmptySubsequences: true)
        guard fields.count == 6, let file = fields[5].firstIndex(of: UInt8(ascii: "/")).map({ fields[5][$0...] })
        else { return nil }
        let isCode = fields[1].elementsEqual("r-xp".utf8)
        guard isCode || fields[1].elementsEqual("r--p".utf8) else { return nil }
        let bounds = String(decoding: fields[0], as: UTF8.self).split(separator: "-")
        guard bounds.count == 2, let start = UInt(bounds[0], radix: 16), let end = UInt(bounds[1], radix: 16),
            start < end
        else { return nil }
        return (start..<end, file, isCode, isCounted: false, isWritten: false)
    }
}

/// This process's use of the machine; nil where the kernel does not say.
package struct ProcessUsage: Sendable, Equatable {
    /// Memory in RAM, shared pages included.
    package var residentBytes: Int64?
    package var openDescriptors: Int?
    /// CPU time of all its threads since its start, in user and kernel mode.
    package var processorTime: Duration?

    /// The values now. Reads below `/proc`, which blocks on no disk.
    package static func now() -> ProcessUsage {
        // Without the descriptor that lists them.
        let descriptors = ProcessSetup.count(of: "/proc/self/fd").map { $0 - 1 }
        return ProcessUsage(residentBytes: resident(), openDescriptors: descriptors, processorTime: processor())
    }

    /// The second number of `/proc/self/statm`, in pages (proc_pid_statm(5)).
    private static func resident() -> Int64? {
        guard let bytes = DurableFile.readIfPossible("/proc/self/statm", limit: 256) else { return nil }
        let fields = bytes.split(separator: UInt8(ascii: " "))
        guard fields.count > 1, let pages = Int64(String(decoding: fields[1], as: UTF8.self)) else { return nil }
        return pages * Int64(sysconf(Int32(_SC_PAGESIZE)))
    }

    private static func processor() -> Duration? {
        var time = timespec()
        guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return nil }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
