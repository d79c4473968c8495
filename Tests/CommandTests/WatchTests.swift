import Foundation
import SystemPackage
import Testing

/// Which files are seen, when they count as complete, and which are left alone.
@Suite(.serialized) struct WatchTests {
    @Test func `a pre-allocated file that is still open is not sent however old it looks`() async throws {
        let place = try Place()
        let agent = try await place.run()
        try await agent.line("watch.added")
        let file = place.drop.appending("recording.wav")
        let content = bytes(100_000)
        do {
            let writer = try FileDescriptor.open(
                file, .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: .ownerReadWrite)
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
}

/// What other programs do to files.
enum Tool {
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
            name.baseAddress.map { open($0, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644) } ?? -1
        }
        guard number >= 0 else { throw Errno(rawValue: errno) }
        let file = FileDescriptor(rawValue: number)
        try file.closeAfter { _ = try file.writeAll(content) }
    }
}
