import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

/// A journal that the version before has left when it was killed, with 10,000 files in all states that are not the last one
/// (`packaging/bench/upgrade.sh` makes it), and what this version makes of it.
struct UpgradeTests {
    private static let archive = FilePath(#filePath).removingLastComponent().removingLastComponent()
        .appending("Fixtures").appending("Upgrade").appending("open.tar.xz")

    /// What the script says of the archive.
    private struct About: Decodable {
        let folder: String
        let port: String
        let bucket: String
        let accessKey: String
        let secretKey: String
        /// Parts of big files that lay at the store.
        let parts: Int
        /// Files with which the version before was done.
        let finished: Int
        let counts: [String: Int]

        var all: Int { counts.values.reduce(0, +) }

        /// The files of some kinds, by their paths below the watched folder.
        func names(_ kinds: String...) -> Set<String> {
            Set(kinds.flatMap { kind in (0..<(counts[kind] ?? 0)).map { "\(kind)/\($0 / 500)/\($0).bin" } })
        }
    }

    /// What the script has written into a file.
    private static func content(_ name: String) -> Data {
        let line = Data((Checksum.sha256(Data(name.utf8)).hex.prefix(16) + "\n").utf8)
        let size = line.count * (name.hasPrefix("big/") ? (11 << 20) / line.count : 3)
        // Doubled: joining its lines would take seconds for each big file.
        var content = line
        while content.count < size { content.append(content.prefix(size - content.count)) }
        return content
    }

    /// Unpacks it into a folder whose path is as long as the one that the journal knows, so that each may stand for the other.
    private static func unpack(_ outer: TemporaryDirectory) throws -> (Place, About) {
        let length = 80 - outer.path.string.utf8.count - 1
        let folder = try outer.makeDirectory(FilePath("upgrade" + String(repeating: "-", count: length - 7)))
        try Tool.run("/usr/bin/env", "python3", "-m", "tarfile", "-e", archive.string, folder.string)
        let place = Place(in: TemporaryDirectory(existing: folder))
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let about = try decoder.decode(About.self, from: place.content(folder.appending("about.json")))
        try #require(about.folder.utf8.count == folder.string.utf8.count)
        return (place, about)
    }

    /// Moves what the archive has to this machine: its folder and the store's port. The destination is there again that the
    /// configuration had lost.
    private static func move(_ place: Place, _ about: About, port: Int) throws {
        let state = try FileManager.default.subpathsOfDirectory(atPath: place.state.string)
        for name in state.map({ place.state.pushing(FilePath($0)) }) + [place.configuration] {
            guard var content = try? place.content(name) else { continue }
            for (old, new) in [(about.folder, place.folder.path.string), (":\(about.port)", ":\(port)")] {
                replace(old, with: new, in: &content)
            }
            try content.write(to: URL(fileURLWithPath: name.string))
        }
        try place.configure(replacing: "destinations:", with: "destinations:\n  gone: { type: folder, path: gone }")
        try place.configure(
            replacing: "routes:",
            with: "routes:\n  - { name: gone, match: { path: \"gone/**\" }, to: gone, key: \"{dir}/{name}\" }")
        try place.folder.makeDirectory("gone")
        try renumber(place)
    }

    /// In a journal's pages one stands in the other's place. It has millions of bytes: `Collection.replace` takes many
    /// seconds for them.
    private static func replace(_ old: String, with new: String, in content: inout Data) {
        precondition(old.utf8.count == new.utf8.count)
        let (old, new) = (Array(old.utf8), Array(new.utf8))
        content.withUnsafeMutableBytes { bytes in
            guard var rest = bytes.baseAddress else { return }
            let end = rest + bytes.count
            while let next = memchr(rest, Int32(old[0]), end - rest), end - next >= old.count {
                let isFound = memcmp(next, old, old.count) == 0
                if isFound { memcpy(next, new, new.count) }
                rest = next + (isFound ? new.count : 1)
            }
        }
    }

    /// What was unpacked has other numbers and times of its own than the files that the journal knows.
    private static func renumber(_ place: Place) throws {
        // There is one root. The index begins with it: without it each file would have the whole table read.
        var statements = "BEGIN;\n"
        for name in try files(place.drop) {
            guard let identity = try FileLook.look(at: place.drop.pushing(FilePath(name))).identity else { continue }
            statements += """
                UPDATE file SET inode = \(identity.inode), device = \(identity.device), changed = \(identity.changed)
                WHERE root = (SELECT root FROM file LIMIT 1)
                AND path = X'\(Data(name.utf8).map { String(format: "%02x", $0) }.joined())';

                """
        }
        let script = try place.folder.write((statements + "COMMIT;\n").utf8, to: "renumber.sql")
        try Tool.run(
            "/usr/bin/env", "sqlite3", "-bail", place.state.appending("journal.sqlite").string, ".read \(script)")
    }

    private static func store(_ place: Place) -> FilePath {
        place.folder.path.appending("sandbox").appending("archive")
    }

    private static func files(_ folder: FilePath) throws -> Set<String> {
        Set(try FileManager.default.subpathsOfDirectory(atPath: folder.string).filter { $0.hasSuffix(".bin") })
    }

    private static func expect(_ names: Set<String>, in folder: FilePath, _ place: Place) throws {
        let found = try files(folder)
        #expect(found.symmetricDifference(names).sorted().prefix(5) == [])
        let damaged = try found.filter { try place.content(folder.pushing(FilePath($0))) != content($0) }
        #expect(damaged.sorted().prefix(5) == [])
    }

    @Test(.timeLimit(.minutes(15)))
    func `10,000 open files of the version before end once, and whole`() async throws {
        let outer = try TemporaryDirectory.inMemory()
        let (place, about) = try Self.unpack(outer)
        let account = S3Sandbox.Account(
            bucket: about.bucket, accessKey: about.accessKey, secretKey: Secret(about.secretKey), region: "us-east-1")
        let sandbox = try S3Sandbox(directory: Self.store(place), account: account)
        try await whileServing({ try await sandbox.run() }) {
            try Self.move(place, about, port: try await sandbox.port())
            let agent = try await place.run()
            try await agent.wait("the end of every file", within: .seconds(600)) {
                agent.lines("job.finished").count >= about.all - about.finished
            }
            #expect(agent.lines("job.failed").isEmpty, "\(agent.lines("job.failed").prefix(5))")
            #expect(try await agent.stop() == .code(0))
            try await Self.check(place, about, sandbox)
            let sent = sandbox.traffic.counts
            // Those that lay there were not sent again.
            // Two more showed which checksum the store compares.
            #expect(sent[.uploadPart] == (about.counts["big"] ?? 0) * 3 - about.parts + 2)
            let next = try await place.run()
            #expect(try await next.stop() == .code(0))
            #expect(sandbox.traffic.counts == sent)
        }
    }

    private static func check(_ place: Place, _ about: About, _ sandbox: S3Sandbox) async throws {
        try expect(about.names("both", "archive", "library"), in: place.library, place)
        try expect(about.names("gone"), in: place.folder.path.appending("gone"), place)
        try expect(about.names("archive"), in: place.folder.path.appending("archive"), place)
        try expect(about.names("small", "both", "gone", "big"), in: place.drop, place)
        let objects = sandbox.objects()
        #expect(Set(objects.map(\.key)) == about.names("small", "both", "big"))
        #expect(objects.filter { $0.versions > 1 }.map(\.key) == [])
        #expect(try objects.filter { try place.content($0.path) != content($0.key) }.map(\.key) == [])
        #expect(try CrashScene.withParts(sandbox.openUploads(), in: store(place)) == [])
        let receipts = try await place.inlet("receipts", "--limit", "20000").objects()
        #expect(receipts.count == about.all)
        #expect(receipts.filter { $0["state"] as? String != "delivered" }.map(\.description) == [])
        #expect(Set(receipts.compactMap { $0["path"] as? String }).count == about.all)
    }
}
