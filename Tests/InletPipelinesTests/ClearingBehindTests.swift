import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// In memory nothing is ever dropped.
private let isOnDisk: Bool = {
    guard let folder = try? TemporaryDirectory(), let kind = try? FileSystemKind.of(folder.path) else { return false }
    return kind.name != "tmpfs"
}()

/// Deliveries of a large file leave the page cache as they found it, whichever way it goes.
@Suite(.timeLimit(.minutes(8)), .enabled(if: isOnDisk, "the folder for temporary files is on a disk"))
struct ClearingBehindTests {
    private static let size: Int64 = 65 << 20

    /// A file without a written byte, which nothing has read yet.
    private static func sparse(_ path: FilePath) throws {
        let file = try FileDescriptor.open(path, .writeOnly, options: [.truncate])
        try file.closeAfter { try file.resize(to: size) }
        #expect(try isUncached(path))
    }

    private static func isUncached(_ path: FilePath) throws -> Bool {
        try SourceFile(opening: path).isUncached(offset: 0, length: size)
    }

    @Test(arguments: ["read-back", "size"]) func `a copy into a folder`(_ verify: String) async throws {
        try await withPlace(.folder(verify)) { place in
            let path = try place.write(Data())
            try Self.sparse(path)
            let proof = try await place.deliver(path, try place.order(path, key: "large.bin")).get()
            #expect(proof.size == Self.size)
            #expect(try Self.isUncached(path))
        }
    }

    @Test(arguments: ["md5", "size", "sha256"]) func `one request to a store`(_ verify: String) async throws {
        try await withS3Place(["multipart_threshold": .bytes(1 << 30), "verify": .string(verify)]) { place in
            let path = try place.write(Data())
            try Self.sparse(path)
            _ = try await place.deliver(path, try place.order(path, key: "large.bin")).get()
            #expect(place.count(.single) == 1 && place.count(.part) == 0)
            #expect(try Self.isUncached(path))
        }
    }

    @Test(arguments: ["multipart", "tus"]) func `a video to GigHive`(_ transport: String) async throws {
        try await withGigHive(transport, settings: ["multipart_limit": .bytes(Self.size)]) { place in
            let (path, _) = try place.file(0)
            try Self.sparse(path)
            let order = DeliveryOrder(
                id: 1, destination: "stage", key: "videos/clip.mp4", mediaType: "video/mp4",
                fields: ["label": "One", "event_date": "2026-11-21"], source: try SourceFile(opening: path).opened)
            _ = try await place.deliver(path, order)
            #expect(place.count(.upload) == (transport == "multipart" ? 1 : 0))
            #expect(try Self.isUncached(path))
        }
    }

    @Test func `what others have in memory stays there`() async throws {
        try await withS3Place(["multipart_threshold": .bytes(1 << 30)]) { place in
            let path = try place.write(Data())
            try Self.sparse(path)
            _ = try Data(contentsOf: URL(fileURLWithPath: path.string)).count
            #expect(try !Self.isUncached(path))
            _ = try await place.deliver(path, try place.order(path, key: "large.bin")).get()
            #expect(try !Self.isUncached(path))
        }
    }
}
