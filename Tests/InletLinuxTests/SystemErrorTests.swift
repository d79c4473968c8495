import Foundation
import Glibc
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

struct SystemErrorTests {
    @Test(arguments: [
        ("open", Errno.permissionDenied, "check that user \(ProcessSetup.userID) may read it"),
        ("create", .permissionDenied, "may write to that folder"),
        ("inotify_add_watch", .noSpace, "sysctl fs.inotify.max_user_watches="),
        ("inotify_init1", .tooManyOpenFiles, "sysctl fs.inotify.max_user_instances="),
        ("fanotify_init", .tooManyOpenFiles, "sysctl fs.fanotify.max_user_groups="),
        ("fanotify_init", .notPermitted, "CAP_SYS_ADMIN"),
        ("fanotify_init", .noFunction, "without fanotify"),
        ("fanotify_init", .invalidArgument, "Linux 5.9"),
        ("fanotify_mark", .notPermitted, "CAP_SYS_ADMIN"),
        ("fanotify_mark", .improperLink, "btrfs subvolume"),
        ("fanotify_mark", .operationNotSupportedByDevice, "no number of its own"),
        ("name_to_handle_at", .notSupported, "no handles"),
        ("open_by_handle_at", .notPermitted, "CAP_DAC_READ_SEARCH"),
        ("write", .noSpace, "free space"),
        ("open", .tooManyOpenFiles, "LimitNOFILE"),
        ("create", .readOnlyFileSystem, "mount the file system for writing"),
        ("write", .diskQuotaExceeded, "quota of user"),
        ("rename", .fileNameTooLong, "shorten the name"),
        ("read", .ioError, "dmesg"),
    ])
    func `a common failure comes with its remedy`(call: String, code: Errno, remedy: String) {
        let text = SystemError(call: call, path: "/srv/x", code: code).description
        #expect(text.hasPrefix("\(call) /srv/x: \(code.description); "))
        #expect(text.contains(remedy), "\(text)")
    }

    @Test(arguments: [
        ("open", true), ("opendir", true), ("create", true), ("rename", true), ("unlink", true), ("mkdir", true),
        ("stat", false), ("inotify_add_watch", false), ("statfs", false), ("getdents", false), ("chmod", false),
    ])
    func `a folder that its owner locked is not taken for one that the agent gave up`(call: String, isOfLandlock: Bool)
    {
        #expect(SystemError(call: call, path: "/srv/x", code: .permissionDenied).isOfLandlock == isOfLandlock)
    }

    @Test func `a watch limit is not a full disk`() {
        let error = SystemError(call: "inotify_add_watch", path: "/srv", code: .noSpace)
        #expect(error.isWatchLimit)
        #expect(!error.isFull)
        #expect(SystemError(call: "write", path: "/srv/x", code: .noSpace).isFull)
        #expect(SystemError(call: "write", path: "/srv/x", code: .diskQuotaExceeded).isFull)
    }

    @Test func `names cannot forge lines or colours`() {
        let error = SystemError(call: "open", path: "/a\n\u{1B}[31m", target: FilePath(bytes: [0xFF]), code: .ioError)
        #expect(error.description.hasPrefix("open /a\\x0A\\x1B[31m to \\xFF: "))
    }
}

@Suite struct KernelFaultPlanTests {
    private func codes(_ plan: KernelFaultPlan, of call: String, _ path: FilePath, times: Int) -> [Errno?] {
        var plan = plan
        return (0..<times).map { _ in plan.next(call, path) }
    }

    @Test func `the same seed lets the same calls fail, and no more than were asked for`() throws {
        let plan = KernelFaultPlan(below: ["/a"], seed: 7, count: 30, every: 4)
        let first = codes(plan, of: "stat", "/a/b", times: 400)
        #expect(first == codes(plan, of: "stat", "/a/b", times: 400))
        #expect(first.count { $0 != nil } == 30)
        #expect(
            Set(first.compactMap(\.self)).isSubset(of: [.ioError, .staleNFSFileHandle, .permissionDenied, .noMemory]))
    }

    @Test func `calls on other folders, and calls that it does not know, are made`() throws {
        let plan = KernelFaultPlan(below: ["/a"], seed: 7, count: 30, every: 1)
        #expect(codes(plan, of: "stat", "/ab", times: 50).allSatisfy { $0 == nil })
        #expect(codes(plan, of: "fcntl", "/a/b", times: 50).allSatisfy { $0 == nil })
        #expect(codes(plan, of: "stat", "/a/b", times: 50).compactMap(\.self).count == 30)
    }

    @Test func `a look fails as the plan says, by a path and in an open folder, and works again when it has ended`()
        throws
    {
        let directory = try TemporaryDirectory()
        let file = try directory.write("content".utf8, to: "a")
        let folder = try Folder(directory.path)
        let number = KernelFaults.begin(KernelFaultPlan(below: [directory.path], seed: 1, count: 100, every: 1))
        #expect(throws: SystemError.self) { try FileLook.look(at: file) }
        #expect(throws: SystemError.self) { try folder.look("a") }
        #expect(throws: SystemError.self) {
            try folder.at("a") { (path) throws(SystemError) in try FileLook.look(at: path) }
        }
        let plan = try #require(KernelFaults.end(number))
        #expect(plan.injected.map { $0.path } == [file, file, file])
        #expect(try folder.look("a").identity?.size == 7)
    }
}

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
