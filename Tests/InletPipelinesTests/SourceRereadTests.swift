import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

struct SourceRereadTests {
    private let folder: TemporaryDirectory
    private let file: RootedPath
    private let known: FileIdentity
    private let bytes = Array(content(2_500_001))

    init() throws {
        folder = try TemporaryDirectory()
        let path = try folder.write(bytes, to: "DCIM/a.mov")
        file = RootedPath(folder.path, "DCIM/a.mov")
        known = try #require(FileLook.look(at: path).identity)
    }

    private func reread(
        _ digests: [Digest] = [], _ contents: [ContentHash] = [], _ known: FileIdentity? = nil
    ) async throws -> SourceReread {
        try await SourceDigests.reread(
            file, known: known ?? self.known, tolerance: 0, digests: digests, contents: contents,
            on: BlockingPool(name: "reread", threads: 1))
    }

    /// As a store computes it from parts.
    private func composite(_ size: Int) -> ContentHash {
        let parts = stride(from: 0, to: bytes.count, by: size).map { bytes[$0..<min($0 + size, bytes.count)] }
        return ContentHash(digest: MD5.digest(of: parts.flatMap { MD5.bytes(of: $0) }), partSize: Int64(size))
    }

    @Test func `a file that still has its checksums is the same`() async throws {
        let whole = ContentHash(digest: SHA256.digest(of: bytes), partSize: nil)
        let digests = Array(SliceHasher.sums([.md5, .sha1, .crc32c, .xxh64], of: bytes).values)
        #expect(try await reread(digests, [whole, composite(1_000_000), composite(700_001)]).outcome == .same)
        #expect(try await reread([], [composite(500_000)]).outcome == .same)
    }

    @Test func `one different checksum of many is a difference`() async throws {
        let (good, wrong) = (SHA256.digest(of: bytes), Digest(.xxh64, [UInt8](repeating: 1, count: 8)))
        for (digests, contents) in [
            ([good, wrong], []), ([good], [ContentHash(digest: MD5.digest(of: [1]), partSize: nil)]),
            ([good], [composite(1_000_000), ContentHash(digest: composite(1_000_000).digest, partSize: 999_999)]),
        ] {
            guard case .differs(let reason) = try await reread(digests, contents).outcome else {
                Issue.record("no difference")
                return
            }
            #expect(reason.hasPrefix("its "), "\(reason)")
        }
    }

    @Test func `without a checksum nothing is read`() async throws {
        var gone = known
        gone.size += 1
        #expect(try await reread([], [], gone).outcome == .nothingToCompare)
    }

    @Test func `a file that was changed since differs, and a missing one is an error`() async throws {
        var other = known
        other.modified -= 1_000_000_000
        guard case .differs = try await reread([SHA256.digest(of: bytes)], [], other).outcome else {
            Issue.record("no difference")
            return
        }
        try FileManager.default.removeItem(atPath: file.whole.string)
        let error = await #expect(throws: SystemError.self) { try await reread([SHA256.digest(of: bytes)]) }
        #expect(error?.isMissing == true)
    }
}
