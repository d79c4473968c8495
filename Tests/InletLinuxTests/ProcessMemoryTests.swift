import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

@Suite struct ProcessMemoryTests {
    private static func mapping(_ head: String, _ lines: String...) -> String {
        ([head, "Size:                 64 kB", "Private_Dirty:         0 kB"] + lines + ["VmFlags: rd ex mr mw me"])
            .joined(separator: "\n") + "\n"
    }

    @Test func `only what is as its program or library has it is given back`() {
        let smaps = [
            Self.mapping("1000-2000 r-xp 00001000 08:01 42    /usr/bin/inlet", "Anonymous:   0 kB", "Swap:   0 kB"),
            // A breakpoint, or relocated code.
            Self.mapping("3000-9000 r-xp 00001000 08:01 43    /usr/lib/old.so", "Anonymous:             4 kB"),
            // The same, swapped out.
            Self.mapping("9000-a000 r-xp 00001000 08:01 43    /usr/lib/old.so", "Anonymous:    0 kB", "Swap:    4 kB"),
            Self.mapping("a000-b000 r--p 00001000 08:01 42    /usr/bin/inlet", "Anonymous:             0 kB"),
            // Relocated constants, and a file that may be unmapped at any moment.
            Self.mapping("b000-c000 r--p 00001000 08:01 42    /usr/bin/inlet", "Anonymous:            12 kB"),
            Self.mapping("40000-41000 r--p 00000000 08:01 45  /usr/share/magic.mgc", "Anonymous:             0 kB"),
            Self.mapping("c000-d000 r-xp 00000000 00:00 0     [vdso]", "Anonymous:             0 kB"),
            Self.mapping("e000-f000 r-xp 00000000 00:00 0 ", "Anonymous:             0 kB"),
            Self.mapping("f000-10000 rwxp 00000000 00:01 7    /memfd:jit (deleted)", "Anonymous:             0 kB"),
            // An old kernel says nothing of it.
            Self.mapping("20000-21000 r-xp 00000000 08:01 44  /usr/lib/a.so"),
            // Replaced by an upgrade: its pages come from the deleted file.
            Self.mapping("30000-32000 r-xp 00000000 08:01 42  /usr/bin/in let (deleted)", "Anonymous:   0 kB"),
        ].joined()
        #expect(
            ProcessMemory.unwrittenPages(Array(smaps.utf8))
                == [0x1000..<0x2000, 0xa000..<0xb000, 0x30000..<0x32000])
        #expect(ProcessMemory.unwrittenPages(Array("Anonymous: 0 kB\nnonsense\n-".utf8)).isEmpty)
    }

    @Test func `code that was given back runs on, and constants are what they were`() throws {
        let smaps = try DurableFile.read("/proc/self/smaps", limit: 8 << 20)
        #expect(!ProcessMemory.unwrittenPages(smaps).isEmpty)
        ProcessMemory.releaseColdPages()
        let after = try DurableFile.read("/proc/self/smaps", limit: 8 << 20)
        #expect(!ProcessMemory.unwrittenPages(after).isEmpty)
    }
}

@Suite struct ProcessFiguresTests {
    @Test func `descriptors that are open are counted`() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write([1], to: "file")
        // Other tests open and close theirs meanwhile: these alone are certain.
        let held = try (0..<64).map { _ in try FileDescriptor.open(path, .readOnly, options: .closeOnExec) }
        defer { for descriptor in held { try? descriptor.close() } }
        #expect(try #require(ProcessFigures.now().openDescriptors) >= 64)
    }

    @Test func `memory is counted once it is used, in bytes`() throws {
        let size = 64 << 20
        let bytes = [UInt8](repeating: 1, count: size)
        let resident = try #require(ProcessFigures.now().residentBytes)
        #expect(resident > Int64(size) && resident < Int64(1) << 40)
        withExtendedLifetime(bytes) {}
    }

    @Test func `processor time grows with work`() throws {
        let before = try #require(ProcessFigures.now().processorTime)
        var sum: UInt64 = 1
        for step in (0 as UInt64)..<1_000_000 { sum = sum &* 31 &+ step }
        let after = try #require(ProcessFigures.now().processorTime)
        #expect(sum != 0 && after > before && after - before < .seconds(3600))
    }
}
