import Foundation
import Glibc
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// What reaches systemd's journal, on a socket of the test's own.
@Suite struct JournalSocketTests {
    @Test func `fields are lines, and what holds a line break has its length before it`() {
        var message = JournalMessage()
        message.add("MESSAGE", "plain")
        message.add("INLET_PATH", [0x61, 0x0A, 0xFF])
        let expected =
            Array("MESSAGE=plain\nINLET_PATH\n".utf8) + [3, 0, 0, 0, 0, 0, 0, 0, 0x61, 0x0A, 0xFF, 0x0A]
        #expect(message.bytes == expected)
        #expect(JournalMessage.fieldName("INLET_", "duration_ms") == "INLET_DURATION_MS")
        #expect(JournalMessage.fieldName("INLET_", "a-b.c") == "INLET_A_B_C")
        #expect(JournalMessage.fieldName("INLET_", String(repeating: "x", count: 100)).count == 64)
    }

    @Test func `an entry is one datagram`() throws {
        let directory = try TemporaryDirectory()
        let journal = try DatagramSocket(at: directory.path.appending("journal"))
        let socket = try JournalSocket(journal.path)
        var message = JournalMessage()
        message.add("MESSAGE", "hello")
        try socket.send(message)
        #expect(journal.receive() == "MESSAGE=hello\n")
    }

    @Test func `nobody at the socket is an error, and a later listener gets what comes then`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("journal")
        let socket = try JournalSocket(path)
        let error = #expect(throws: SystemError.self) { try socket.send(JournalMessage()) }
        #expect(error?.isMissing == true)
        let journal = try DatagramSocket(at: path)
        var message = JournalMessage()
        message.add("MESSAGE", "later")
        try socket.send(message)
        #expect(journal.receive() == "MESSAGE=later\n")
    }

    @Test func `an entry that no datagram holds comes as a file that nobody can change`() throws {
        let directory = try TemporaryDirectory()
        let journal = try DatagramSocket(at: directory.path.appending("journal"))
        let socket = try JournalSocket(journal.path)
        let text = String(repeating: "0123456789", count: 400_000)
        var message = JournalMessage()
        message.add("MESSAGE", text)
        try socket.send(message)
        let file = try #require(journal.receiveDescriptor())
        defer { close(file) }
        var status = stat()
        #expect(fstat(file, &status) == 0 && Int(status.st_size) == message.bytes.count)
        var start = [UInt8](repeating: 0, count: 18)
        #expect(pread(file, &start, start.count, 0) == 18)
        #expect(String(decoding: start, as: UTF8.self) == "MESSAGE=0123456789")
        #expect(pwrite(file, "x", 1, 0) == -1 && errno == EPERM)
    }

    @Test func `only the stream that the manager names is the journal`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("stream")
        let descriptor = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .closeOnExec], permissions: [.ownerReadWrite])
        defer { try? descriptor.close() }
        var status = stat()
        #expect(fstat(descriptor.rawValue, &status) == 0)
        let name = "\(status.st_dev):\(status.st_ino)"
        #expect(ProcessSetup.isJournal(descriptor.rawValue) { $0 == "JOURNAL_STREAM" ? name : nil })
        #expect(!ProcessSetup.isJournal(descriptor.rawValue) { _ in "\(name)1" })
        #expect(!ProcessSetup.isJournal(descriptor.rawValue) { _ in nil })
    }
}
