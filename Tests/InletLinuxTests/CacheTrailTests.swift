import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

/// What is looked at and cleared behind the readers of a large file.
struct CacheWindowsTests {
    private static let size = CacheWindows.size

    private static func range(_ window: Int64, fileSize: Int64 = .max) -> Range<Int64> {
        window * size..<min((window + 1) * size, fileSize)
    }

    /// Windows of a file, all looked at; those of `warm` were in memory.
    private static func windows(_ fileSize: Int64, readings: Int, warm: Set<Int> = []) -> CacheWindows {
        var windows = CacheWindows(fileSize: fileSize, readings: readings)
        for case .look(let window, _) in windows.begin() { windows.found(window, isCold: !warm.contains(window)) }
        return windows
    }

    /// Reads a range as a reader does, piece by piece, and returns what was cleared, in its order.
    private static func read(
        _ windows: inout CacheWindows, _ range: Range<Int64>, warm: Set<Int> = [], piece: Int64 = 1 << 20
    ) -> [Range<Int64>] {
        var dropped: [Range<Int64>] = []
        for offset in stride(from: range.lowerBound, to: range.upperBound, by: Int(piece)) {
            for step in windows.read(at: offset, count: min(piece, range.upperBound - offset)) {
                switch step {
                case .look(let window, _): windows.found(window, isCold: !warm.contains(window))
                case .drop(let range): dropped.append(range)
                }
            }
        }
        return dropped
    }

    @Test func `a window is looked at before anybody is in it, once`() {
        let fileSize = 3 * Self.size + 1
        var windows = CacheWindows(fileSize: fileSize, readings: 1)
        #expect(windows.begin() == [.look(0, Self.range(0)), .look(1, Self.range(1))])
        #expect(windows.read(at: 0, count: 1) == [])
        #expect(windows.read(at: Self.size, count: 1) == [.look(2, Self.range(2))])
        #expect(windows.read(at: 0, count: 1) == [])
        #expect(windows.read(at: 2 * Self.size, count: 1) == [.look(3, Self.range(3, fileSize: fileSize))])
        #expect(windows.read(at: 3 * Self.size, count: 1) == [])
        #expect(windows.read(at: fileSize, count: 0) == [])
    }

    @Test func `a single reader clears each window as it leaves it`() {
        let fileSize = 2 * Self.size + 5
        var windows = Self.windows(fileSize, readings: 1)
        #expect(Self.read(&windows, 0..<Self.size - 1) == [])
        #expect(Self.read(&windows, Self.size - 1..<Self.size) == [Self.range(0)])
        let rest = [Self.range(1), Self.range(2, fileSize: fileSize)]
        // Pieces of an odd length go across the borders.
        #expect(Self.read(&windows, Self.size..<fileSize, piece: 999_983) == rest)
        #expect(windows.end() == [])
    }

    @Test func `of two readers the last one clears`() {
        var windows = Self.windows(4 * Self.size, readings: 2)
        #expect(Self.read(&windows, 0..<3 * Self.size) == [])
        #expect(Self.read(&windows, 0..<2 * Self.size) == [Self.range(0), Self.range(1)])
        // What was given up half-way is cleared at the end.
        #expect(windows.end() == [Self.range(2)])
        #expect(windows.end() == [])
    }

    @Test func `what was in memory stays, also when it is read again`() {
        var windows = Self.windows(4 * Self.size, readings: 1, warm: [1, 2])
        #expect(Self.read(&windows, 0..<4 * Self.size, warm: [1, 2]) == [Self.range(0), Self.range(3)])
        #expect(Self.read(&windows, 0..<4 * Self.size, warm: []) == [Self.range(0), Self.range(3)])
        #expect(windows.end() == [])
    }

    @Test func `who reads once more does so alone`() {
        var windows = Self.windows(2 * Self.size, readings: 2)
        #expect(Self.read(&windows, 0..<Self.size) == [])
        #expect(Self.read(&windows, 0..<Self.size) == [Self.range(0)])
        #expect(Self.read(&windows, 0..<Self.size) == [Self.range(0)])
        #expect(Self.read(&windows, 0..<1) == [])
        #expect(windows.end() == [Self.range(0)])
    }
}

/// In memory nothing is ever dropped.
private let isOnDisk: Bool = {
    guard let folder = try? TemporaryDirectory(), let kind = try? FileSystemKind.of(folder.path) else { return false }
    return kind.name != "tmpfs"
}()

@Suite(.enabled(if: isOnDisk, "the folder for temporary files is on a disk")) struct CacheTrailTests {
    private struct Broken: Error {}

    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    /// A file without a written byte: what is read of it is in the page cache all the same.
    private func source(_ size: Int64) throws -> SourceFile {
        let path = folder.path.appending("source")
        let file = try FileDescriptor.open(path, .writeOnly, options: [.create], permissions: [.ownerReadWrite])
        try file.closeAfter { try file.resize(to: size) }
        return try SourceFile(opening: path)
    }

    private func read(_ source: SourceFile, _ range: Range<Int64>) throws {
        var room = [UInt8](repeating: 0, count: 1 << 20)
        for offset in stride(from: range.lowerBound, to: range.upperBound, by: room.count) {
            _ = try room.withUnsafeMutableBytes { try source.read(into: $0, at: offset) }
        }
    }

    private static let size = CacheTrail.smallest + CacheWindows.size

    private func isUncached(_ source: SourceFile, _ range: Range<Int64>) -> Bool {
        source.isUncached(offset: range.lowerBound, length: range.upperBound - range.lowerBound)
    }

    @Test func `a large file is cleared behind its reader`() async throws {
        let source = try source(Self.size)
        try await source.clearingBehind(readings: 1) {
            try read(source, 0..<2 * CacheWindows.size)
            #expect(isUncached(source, 0..<2 * CacheWindows.size))
            try read(source, 2 * CacheWindows.size..<Self.size)
        }
        #expect(isUncached(source, 0..<Self.size))
        // Afterwards nobody is followed.
        try read(source, 0..<Self.size)
        #expect(!isUncached(source, 0..<Self.size))
    }

    @Test func `what somebody else has in memory stays there`() async throws {
        let source = try source(Self.size)
        let theirs = CacheWindows.size..<2 * CacheWindows.size
        try read(source, theirs)
        try await source.clearingBehind(readings: 1) { try read(source, 0..<Self.size) }
        #expect(!isUncached(source, theirs))
        // Not the next one: the kernel may have read ahead for them.
        #expect(isUncached(source, 3 * CacheWindows.size..<Self.size))
    }

    @Test func `a reading that fails leaves nothing behind either`() async throws {
        let source = try source(Self.size)
        await #expect(throws: Broken.self) {
            try await source.clearingBehind(readings: 2) {
                try read(source, 0..<2 * CacheWindows.size)
                throw Broken()
            }
        }
        #expect(isUncached(source, 0..<2 * CacheWindows.size))
    }

    @Test func `a small file is left alone`() async throws {
        let source = try source(CacheTrail.smallest)
        try await source.clearingBehind(readings: 1) { try read(source, 0..<CacheTrail.smallest) }
        #expect(!isUncached(source, 0..<CacheTrail.smallest))
    }

    @Test func `a copy within the kernel counts as a reading`() async throws {
        let source = try source(Self.size)
        try await source.clearingBehind(readings: 2) {
            try read(source, 0..<Self.size)
            #expect(!isUncached(source, 0..<Self.size))
            _ = try FileCopy.copy(
                source, toTemporaryIn: folder.path, name: "copy", isCancelled: { false }, progress: { _ in })
        }
        #expect(isUncached(source, 0..<Self.size))
    }
}
