import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Which files are seen, when they count as complete, and which are left alone.
@Suite(.serialized) struct WatchTests {
    @Test func `a file that is there at the start is delivered`() async throws {
        let place = try Place()
        try place.put("early/a.txt", bytes(10))
        let agent = try await place.run()
        try await agent.line("job.finished")
        #expect(try place.content(place.library.appending("early").appending("a.txt")) == bytes(10))
    }

    @Test func `existing: skip leaves old files alone, also after a restart, and takes new ones`() async throws {
        var config = ConfigText()
        config.watch.append("existing: skip")
        let place = try Place(config)
        try place.put("old.txt", bytes(10))
        for name in ["new.txt", "newer.txt"] {
            let agent = try await place.run()
            try await agent.line("watch.added")
            try place.put(FilePath(name), bytes(20))
            try await agent.line("job.finished") { $0.isAbout(name) }
            #expect(try await agent.stop() == .code(0))
        }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: place.library.string).sorted() == [
                "new.txt", "newer.txt",
            ])
    }

    @Test func `fifty deep trees made at once lose no file`() async throws {
        let place = try Place()
        let agent = try await place.run()
        try await agent.line("watch.added")
        for number in 0..<50 {
            try place.folder.write(bytes(10), to: FilePath("drop/card\(number)/DCIM/100CANON/IMG_\(number).JPG"))
        }
        try await agent.line("job.finished", number: 50)
        #expect(Set(agent.lines("job.finished").compactMap { $0["path"] }).count == 50)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a folder that is moved in is found with its files, and one that is moved out is forgotten`()
        async throws
    {
        let place = try Place()
        try place.folder.write(bytes(10), to: "outside/sub/a.txt")
        let agent = try await place.run()
        try await agent.line("watch.added")
        try FileManager.default.moveItem(
            atPath: place.folder.path.appending("outside").string, toPath: place.drop.appending("inside").string)
        try await agent.line("job.finished") { $0.isAbout("a.txt") }
        try FileManager.default.moveItem(
            atPath: place.drop.appending("inside").string, toPath: place.folder.path.appending("away").string)
        try place.folder.write(bytes(20), to: "away/sub/unseen.txt")
        try place.put("last.txt", bytes(30))
        try await agent.line("job.finished") { $0.isAbout("last.txt") }
        #expect(agent.lines("job.admitted") { $0.isAbout("unseen.txt") }.isEmpty)
    }

    @Test func `a pre-allocated file that is still open is not sent however old it looks`() async throws {
        let place = try Place()
        let agent = try await place.run()
        try await agent.line("watch.added")
        let file = place.drop.appending("recording.wav")
        let content = bytes(100_000)
        do {
            let writer = try FileDescriptor.open(
                file, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
            defer { try? writer.close() }
            try writer.writeAll(Data(count: content.count))
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: file.string)
            try await agent.line("file.settling") { $0["busy"] == "yes" }
            try place.put("other.txt", bytes(10))
            try await agent.line("job.finished") { $0.isAbout("other.txt") }
            #expect(agent.lines("job.admitted") { $0.isAbout("recording.wav") }.isEmpty)
            #expect(try await place.inlet("status").output.contains("recording.wav: open for writing"))
            try writer.writeAll(toAbsoluteOffset: 0, content)
        }
        try await agent.line("job.finished") { $0.isAbout("recording.wav") }
        #expect(try place.content(place.library.appending("recording.wav")) == content)
    }

    @Test func `chmod sends nothing again, and neither does a restart`() async throws {
        try await withSpiral { place, sandbox in
            let agent = try await place.run()
            try place.put("a.bin", bytes(1000))
            try await agent.line("job.finished")
            let file = place.drop.appending("a.bin").string
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
            try await agent.line("job.known")
            try await agent.stop()
            let next = try await place.run()
            try await next.line("watch.added")
            try place.put("b.bin", bytes(10))
            try await next.line("job.finished")
            #expect(next.lines("job.admitted").count == 1)
            #expect(sandbox.objects().map(\.versions) == [1, 1])
        }
    }

    @Test func `new content under an old time is sent, under a key of its own`() async throws {
        try await withSpiral { place, sandbox in
            let agent = try await place.run()
            try place.put("a.bin", bytes(1000, seed: 1))
            try await agent.line("job.finished")
            let file = place.drop.appending("a.bin").string
            let other = try place.folder.write(bytes(1000, seed: 2), to: "other").string
            try Tool.run("/usr/bin/touch", "-r", file, other)
            #expect(rename(other, file) == 0)
            try await agent.line("job.finished", number: 2)
            #expect(sandbox.objects().map(\.key) == ["a.bin", "a_2.bin"])
            #expect(try place.content(#require(sandbox.objects().last).path) == bytes(1000, seed: 2))
            #expect(sandbox.objects().map(\.versions) == [1, 1])
        }
    }

    @Test func `a root that is missing, removed and made again is waited for, once said each time`() async throws {
        let place = try Place()
        try FileManager.default.removeItem(atPath: place.drop.string)
        let agent = try await place.run()
        try await agent.line("watch.lost")
        try place.put("first.txt", bytes(10))
        try await agent.line("job.finished", number: 1)
        try FileManager.default.removeItem(atPath: place.drop.string)
        try await agent.line("watch.lost") { $0["reason"]?.contains("removed") ?? false }
        try place.put("second.txt", bytes(20))
        try await agent.line("job.finished", number: 2)
        #expect(try await agent.stop() == .code(0))
        #expect(agent.lines("watch.lost").count <= 3, "\(agent.lines("watch.lost"))")
        #expect(place.exists(place.library.appending("second.txt")))
    }

    @Test func `names that are no UTF-8, have a newline or 255 bytes arrive`() async throws {
        let place = try Place()
        let names: [[UInt8]] = [
            Array("latin-".utf8) + [0xE9, 0xFF] + Array(".txt".utf8), Array("two\nlines.txt".utf8),
            [UInt8](repeating: UInt8(ascii: "n"), count: 251) + Array(".txt".utf8), Array("-rf.txt".utf8),
            Array("e\u{301}t\u{E9}.txt".utf8),
        ]
        let agent = try await place.run()
        try await agent.line("watch.added")
        for (number, name) in names.enumerated() {
            try Tool.write(bytes(10 + number), to: Array(place.drop.string.utf8) + [UInt8(ascii: "/")] + name)
        }
        try await agent.line("job.finished", number: names.count)
        #expect(agent.lines("job.finished").allSatisfy { $0["state"] == "delivered" })
        let stored = try FileManager.default.contentsOfDirectory(atPath: place.library.string)
        let sizes = try stored.map { try place.content(place.library.appending($0)).count }.sorted()
        #expect(sizes == [10, 11, 12, 13, 14], "\(stored)")
        let text = try await place.inlet("queue", "list")
        #expect(text.output.split(separator: "\n").count == names.count + 1, "\(text.output)")
    }

    @Test func `FIFOs and symlinks are never read, and said once`() async throws {
        let place = try Place()
        try place.folder.write(bytes(10), to: "secret.txt")
        let agent = try await place.run()
        try await agent.line("watch.added")
        #expect(mkfifo(place.drop.appending("pipe").string, 0o600) == 0)
        #expect(mkfifo(place.drop.appending("pipe too").string, 0o600) == 0)
        #expect(symlink(place.folder.path.appending("secret.txt").string, place.drop.appending("link.txt").string) == 0)
        try place.put("real.bin", bytes(10))
        try await agent.line("job.finished")
        try await agent.line("file.ignored", number: 2)
        #expect(try await agent.stop() == .code(0))
        #expect(agent.lines("file.ignored").count == 2, "\(agent.lines("file.ignored"))")
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.library.string) == ["real.bin"])
    }

    @Test(.enabled(if: Tool.queuedEvents <= 50_000, "a longer queue takes minutes to fill"))
    func `more events than the kernel queues lead to a scan that finds what was lost`() async throws {
        let place = try Place()
        let agent = try await place.run()
        try await agent.line("watch.added")
        let events = Tool.queuedEvents
        agent.signal(SIGSTOP)
        try await agent.wait("it is stopped") { agent.isStopped }
        // The kernel merges equal events in a row, so two files take turns; both are ignored by their names. A thousand more
        // than fit, for what it has read and not yet looked at.
        let files = ["a.part", "b.part"].map { place.drop.appending($0) }
        for file in files { try Data().write(to: URL(fileURLWithPath: file.string)) }
        for number in 0..<events + 1000 { #expect(chmod(files[number % 2].string, 0o600) == 0) }
        try place.folder.write(bytes(10), to: "drop/lost.txt")
        agent.signal(SIGCONT)
        try await agent.line("watch.overflow")
        try await agent.line("job.finished") { $0.isAbout("lost.txt") }
        #expect(try await agent.stop() == .code(0))
    }
}

/// What other programs do to files.
enum Tool {
    /// How many events the kernel keeps for one inotify instance; 0 when it does not say.
    static let queuedEvents =
        (try? String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8))
        .flatMap { Int($0.filter(\.isNumber)) } ?? 0

    static func run(_ program: String, _ arguments: String...) throws {
        let process = try Process.run(URL(fileURLWithPath: program), arguments: arguments)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw InletProcess.Unexpected(description: "\(program) ended with \(process.terminationStatus)")
        }
    }

    /// Writes to a path of any bytes.
    static func write(_ content: Data, to path: [UInt8]) throws {
        let number = (path + [0]).map { CChar(bitPattern: $0) }.withUnsafeBufferPointer { name in
            name.baseAddress.map { open($0, O_WRONLY | O_CREAT, 0o644) } ?? -1
        }
        guard number >= 0 else { throw Errno(rawValue: errno) }
        let file = FileDescriptor(rawValue: number)
        try file.closeAfter { _ = try file.writeAll(content) }
    }
}
