import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// Starts on a machine that lacks something.
@Suite(.serialized) struct StartTests {
    /// A user of the test's own: limits of processes count all that a user has.
    private static let user = "54321"
    private static let launcher = ["/usr/bin/setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]

    @Test(
        .enabled(if: Nobody.isAvailable, "needs root and setpriv"),
        arguments: [("--nofile=30", "file descriptors are needed"), ("--nproc=10", "threads are needed")])
    func `what a start lacks is named, and it is for another time`(_ limit: String, _ words: String) async throws {
        let place = try Place()
        try Tool.run("/bin/chown", "-R", "\(Self.user):\(Self.user)", place.folder.path.string)
        let agent = try place.start("run", launcher: Self.launcher + ["/usr/bin/prlimit", limit])
        #expect(try await agent.ending() == .code(75))
        #expect(agent.errors.contains(words), "\(agent.errors)")
    }

    @Test func `what nobody opened for a start is /dev/null, and no file or socket of the agent's`() async throws {
        let place = try Place()
        try place.configure(replacing: "log: { level: debug }", with: "log: { output: inlet.log }")
        let agent = try place.start(
            "run", launcher: ["/bin/sh", "-c", #"exec "$@" <&- >&- 2>&-"#, "sh"])
        try await agent.wait("it is ready") { try await place.inlet("status").output.contains("All is well") }
        for number in 0...2 {
            let file = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(agent.id)/fd/\(number)")
            #expect(file == "/dev/null", "\(number)")
        }
        #expect(try await agent.stop() == .code(0))
    }

    @Test(.enabled(if: TestMount.isAllowed, "needs the right to mount a tmpfs"))
    func `a full disk of the state directory is waited for`() async throws {
        let place = try Place()
        let disk = try TestMount("tmpfs", at: place.folder.makeDirectory("state"), options: "size=1m")
        let ballast = disk.path.appending("ballast").string
        try Data().write(to: URL(fileURLWithPath: ballast))
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: ballast))
        while (try? file.write(contentsOf: Data(count: 4096))) != nil {}
        try file.close()
        let agent = try place.start("run")
        let line = try await agent.line("journal.full")
        #expect(line["reason"]?.contains("goes on by itself") == true, "\(line)")
        try FileManager.default.removeItem(atPath: ballast)
        try await agent.line("agent.ready")
        #expect(agent.lines("journal.recovered").count == 1)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a journal that another program has locked is waited for, and SIGTERM ends that`() async throws {
        let place = try Place()
        try await place.inlet("status", code: 0)
        let journal = open(place.state.appending("journal.sqlite").string, O_RDWR | O_CLOEXEC)
        defer { close(journal) }
        // The bytes that SQLite's readers and writers lock.
        var lock = flock(
            l_type: Int16(F_WRLCK), l_whence: Int16(SEEK_SET), l_start: 0x4000_0002, l_len: 510, l_pid: 0)
        #expect(fcntl(journal, F_SETLK, &lock) == 0)
        let agent = try place.start("run")
        let line = try await agent.line("journal.failing")
        #expect(line["reason"]?.contains("locked") == true, "\(line)")
        #expect(try await agent.stop() == .code(0))
    }

    /// In KiB: what is left free, around the size of the index of the write-ahead log.
    @Test(
        .enabled(if: DiskImage.isAvailable, "needs the right to mount a disk in a file"), arguments: [24, 34, 44])
    func `no disk that is nearly full ends a start by a signal`(_ free: Int) async throws {
        let place = try Place()
        try await place.inlet("status", code: 0)
        let disk = try DiskImage(label: "small", blockSize: 1024)
        let point = try place.folder.makeDirectory("point")
        try disk.mount(at: point)
        try Tool.run("/bin/cp", "-a", place.state.string + "/.", point.string)
        let ballast = try FileHandle(
            forWritingTo: URL(fileURLWithPath: place.folder.write(Data(), to: "point/ballast").string))
        while (try? ballast.write(contentsOf: Data(count: 1024))) != nil {}
        try ballast.truncate(atOffset: try ballast.offset() - UInt64(free) << 10)
        try ballast.close()
        try place.configure(replacing: "state_dir: state", with: "state_dir: point")
        let status = try await place.inlet("status")
        if case .signal(let number) = status.ending { Issue.record("ended by signal \(number)") }
        try disk.unmount(point)
    }
}
