import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// The built binary on a kernel that lacks what is newer than Linux 3.10: a seccomp filter answers those calls with ENOSYS, as
/// such a kernel would. What such a kernel does otherwise is not simulated.
@Suite(.enabled(if: OldKernel.isAvailable, "needs python3 and seccomp")) struct OldKernelTests {
    @Test func `files are copied, archived and moved to quarantine without the newer calls`() async throws {
        let place = try Place(route: [
            "on_success: archive", "on_failure: quarantine", "validate: { extensions: [mov] }",
        ])
        let agent = try await place.run(launcher: try OldKernel.launcher(in: place.folder))
        try await agent.line("agent.unconfined") { $0["reason"]?.contains("no Landlock") ?? false }
        // As root has it.
        try await agent.line("watch.added") { $0["writer_check"]?.hasPrefix("on") ?? false }
        try place.put("take.mov", bytes(3_000_000))
        try place.put("sub/note.exe", bytes(10))
        try await agent.line("job.finished") { $0.isAbout("take.mov") && $0["state"] == "delivered" }
        try await agent.line("job.finished") { $0.isAbout("note.exe") && $0["state"] == "rejected" }
        #expect(try place.content(place.library.appending("take.mov")) == bytes(3_000_000))
        #expect(try place.content(place.drop.pushing(".inlet/done/take.mov")) == bytes(3_000_000))
        #expect(try place.content(place.drop.pushing(".inlet/failed/sub/note.exe")) == bytes(10))
        #expect(!place.exists(place.drop.appending("take.mov")) && !place.exists(place.drop.pushing("sub/note.exe")))
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `without fanotify folders are watched by inotify, and files are derived`() async throws {
        let place = try Place(
            watch: ["mode: fanotify"],
            route: ["derive: [{ name: copy, command: [cp, \"{in}\", \"{out}\"], suffix: .copy.txt }]"])
        let launcher = try OldKernel.launcher(in: place.folder)
        let check = try place.start("check", launcher: launcher)
        // A warning.
        #expect(try await check.ending() == .code(1))
        let refusal = "watch \(place.drop): mode: fanotify is unavailable, so Inlet uses inotify: fanotify_init: "
        #expect(check.output.contains(refusal), "\(check.output)")
        let agent = try await place.run(launcher: launcher)
        try await agent.line("watch.mode") {
            $0["mode"] == "inotify" && $0["reason"]?.hasPrefix("fanotify cannot be used: ") ?? false
        }
        try await agent.line("watch.added")
        try place.put("take.mov", bytes(100_000))
        try await agent.line("file.derived") { $0["name"] == "copy" && $0.isAbout("take.mov") }
        try await agent.line("job.delivered") { $0["key"] == "take.mov.copy.txt" }
        #expect(try place.content(place.library.appending("take.mov.copy.txt")) == bytes(100_000))
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `an agent that must be confined does not start without landlock, and says so`() async throws {
        let place = try Place(top: ["landlock: required"])
        let agent = try place.start("run", launcher: try OldKernel.launcher(in: place.folder))
        #expect(try await agent.ending() == .code(78))
        #expect(agent.errors.contains("landlock: required, but unavailable: this kernel has no Landlock"))
    }

    @Test func `who holds a file is found without statx`() async throws {
        let place = try Place()
        let agent = try await place.run(launcher: try OldKernel.launcher(in: place.folder))
        try await agent.line("watch.added")
        let writer = try FileDescriptor.open(
            place.drop.appending("recording.wav"), .writeOnly, options: [.create, .closeOnExec],
            permissions: .ownerReadWrite)
        try await agent.line("file.settling") { $0["busy"] == "yes" }
        try await eventually("the status names this process") {
            let status = try await place.inlet("status").output
            return status.contains("recording.wav\topen for writing by ") && status.contains("(process \(getpid()))")
        }
        try writer.close()
        try await agent.line("job.finished") { $0.isAbout("recording.wav") }
        #expect(try await agent.stop() == .code(0))
    }
}

/// Runs a program as on an old kernel.
enum OldKernel {
    static var isAvailable: Bool {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/python3"), let folder = try? TemporaryDirectory(),
            let launcher = try? launcher(in: folder)
        else { return false }
        return (try? Tool.run(launcher[0], launcher[1], "/bin/true")) != nil
    }

    static func launcher(in folder: TemporaryDirectory) throws -> [String] {
        let script = try folder.write(Self.script.utf8, to: "old-kernel.py")
        return ["/usr/bin/python3", script.string]
    }

    /// landlock, statx, openat2, copy_file_range, renameat2, pidfd_open, close_range, faccessat2, getrandom, clone3 and fanotify_init give
    /// ENOSYS (38); openat with O_TMPFILE gives EISDIR (21), which is what kernels before 3.11 make of it. All others are let
    /// through: a BPF program for seccomp(2) that looks at the call's number and, of openat, at its flags.
    private static let script = """
        import ctypes, os, platform, struct, sys
        missing = {
            "x86_64": [444, 445, 446, 332, 437, 326, 316, 434, 436, 439, 318, 435, 300],
            "aarch64": [444, 445, 446, 291, 437, 285, 276, 434, 436, 439, 278, 435, 262],
        }
        open_at = {"x86_64": 257, "aarch64": 56}
        load, equal, has, answer = 0x20, 0x15, 0x45, 0x06
        steps = [(load, 0, 0, 0)]
        for number in missing[platform.machine()]:
            steps += [(equal, 0, 1, number), (answer, 0, 0, 0x00050000 | 38)]
        steps += [(equal, 0, 3, open_at[platform.machine()]), (load, 0, 0, 32)]
        steps += [(has, 0, 1, 0x400000), (answer, 0, 0, 0x00050000 | 21), (answer, 0, 0, 0x7FFF0000)]
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
        program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program) != 0:
            sys.exit(os.strerror(ctypes.get_errno()))
        os.execv(sys.argv[1], sys.argv[1:])
        """
}

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
        #expect(line["reason"]?.contains("continues automatically") == true, "\(line)")
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
