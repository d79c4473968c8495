import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// In memory nothing is ever dropped.
private let isOnDisk: Bool = {
    guard let folder = try? TemporaryDirectory(), let kind = try? FileSystemKind.of(folder.path) else { return false }
    return kind.name != "tmpfs"
}()

@Suite(.enabled(if: isOnDisk, "the folder for temporary files is on a disk")) struct CacheVisitTests {
    private static let part: Range<Int64> = 8 << 20..<16 << 20

    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    /// A file without a written byte: what is read of it is in the page cache all the same.
    private func source(_ size: Int64) throws -> SourceFile {
        let path = folder.path.appending("source")
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .closeOnExec], permissions: [.ownerReadWrite])
        try file.closeAfter { try file.resize(to: size) }
        return try SourceFile(opening: path)
    }

    private func read(_ source: SourceFile, _ range: Range<Int64>) throws {
        var room = [UInt8](repeating: 0, count: 1 << 20)
        for offset in stride(from: range.lowerBound, to: range.upperBound, by: room.count) {
            _ = try room.withUnsafeMutableBytes { try source.read(into: $0, at: offset) }
        }
    }

    private func isUncached(_ source: SourceFile) -> Bool {
        source.isUncached(offset: Self.part.lowerBound, length: Int64(Self.part.count))
    }

    @Test(
        arguments: [
            (CacheVisit.smallest + 1, false, true), (CacheVisit.smallest + 1, true, false),
            (CacheVisit.smallest, false, false),
        ] as [(Int64, Bool, Bool)])
    func `only of a large file, and only what nobody had read before, is given back`(
        size: Int64, wasCached: Bool, isGivenBack: Bool
    ) throws {
        let source = try source(size)
        #expect(isUncached(source))
        if wasCached { try read(source, Self.part) }
        let visit = CacheVisit(source, Self.part)
        try read(source, Self.part)
        #expect(!isUncached(source))
        visit.end()
        #expect(isUncached(source) == isGivenBack)
    }
}
