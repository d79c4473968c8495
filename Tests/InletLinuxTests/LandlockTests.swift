import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

/// Threads that confine themselves, each for good: the others of this process stay as they are.
@Suite(.enabled(if: Landlock.version ?? 0 >= 6, "needs Linux 6.12 with Landlock"))
struct LandlockScopeTests {
    /// What `body` says on a thread that has given up everything.
    private func confined(
        to rules: [AccessRule] = [], usesAbstractSockets: Bool = false, _ body: @escaping @Sendable () -> Bool
    ) throws -> Bool {
        try LoopThread.result(name: "confined") { () throws(SystemError) in
            try Landlock.restrict(to: rules, usesAbstractSockets: usesAbstractSockets)
            return body()
        }
    }

    @Test func `what is not named is neither read nor started`() throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write([1], to: "secret").string
        #expect(access("/bin/true", X_OK) == 0)
        #expect(try !confined { Self.opens(file) } && Self.opens(file))
        #expect(try !confined { Self.starts("/bin/true") } && Self.starts("/bin/true"))
    }

    @Test func `what is named for reading is neither written nor started, and what is for writing is not started`()
        throws
    {
        let folder = try TemporaryDirectory()
        let file = try folder.write([1], to: "file").string
        let program = folder.path.appending("program")
        try FileManager.default.copyItem(
            atPath: URL(fileURLWithPath: "/bin/true").resolvingSymlinksInPath().path, toPath: program.string)
        // With all that a program needs to start.
        let system = ["/usr", "/lib", "/lib64", "/bin", "/etc"].map { AccessRule($0) }
        for mayWrite in [false, true] {
            let rules = system + [AccessRule(folder.path, mayWrite: mayWrite)]
            #expect(try confined(to: rules) { Self.opens(file) })
            #expect(try confined(to: rules) { Self.opens(file, O_WRONLY) } == mayWrite)
            #expect(try confined(to: rules) { Self.makes(file + "-\(mayWrite)") } == mayWrite)
            for name in ["/bin/true", program.string] {
                #expect(try !confined(to: rules) { Self.starts(name) } && Self.starts(name), "\(name)")
            }
        }
    }

    private static func makes(_ path: String) -> Bool { opens(path, O_WRONLY | O_CREAT | O_EXCL) }

    private static func opens(_ path: String, _ flags: CInt = O_RDONLY) -> Bool {
        let number = open(path, flags | O_CLOEXEC, 0o600)
        if number >= 0 { close(number) }
        return number >= 0
    }

    private static func starts(_ program: String) -> Bool {
        var process = pid_t()
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(program), nil]
        defer { free(arguments[0]) }
        guard posix_spawn(&process, program, nil, nil, &arguments, nil) == 0 else { return false }
        var status: CInt = 0
        return waitpid(process, &status, 0) == process && status == 0
    }

    @Test func `no signal reaches a process that was there before`() throws {
        let other = try OtherProcess("echo ready; read line")
        let id = other.id
        #expect(kill(id, 0) == 0)
        #expect(try !confined { kill(id, 0) == 0 })
    }

    @Test func `a socket without a file is reached only where that is wanted`() throws {
        let name = "inlet-test-\(UInt64.random(in: 0 ... .max))"
        let socket = try DatagramSocket(abstract: name)
        let notify = try #require(SystemdSocket { $0 == "NOTIFY_SOCKET" ? "@" + name : nil })
        #expect(notify.send("READY=1"))
        #expect(try !confined { notify.send("READY=1") })
        #expect(try confined(usesAbstractSockets: true) { notify.send("READY=1") })
        withExtendedLifetime(socket) {}
    }
}

/// Processes that give up system calls, each for good.
@Suite(.enabled(if: CallFilter.isAvailable, "needs Linux 4.14 with seccomp"))
struct CallFilterTests {
    @Test func `what nobody here has a use for is refused, to threads that were there before too`() async {
        await #expect(processExitsWith: .success) {
            let isFiltered = DispatchSemaphore(value: 0)
            let before = try LoopThread(name: "before") {
                isFiltered.wait()
                if !RawCalls.allowed.isEmpty { exit(3) }
            }
            // Whoever is not root is refused most of them anyhow.
            if geteuid() == 0, RawCalls.allowed.isEmpty { exit(2) }
            try CallFilter.apply()
            let allowed = RawCalls.allowed
            if !allowed.isEmpty { fatalError("\(allowed)") }
            isFiltered.signal()
            before.join()
        }
    }

    @Test
    func `namespaces, packets and calls of another processor's form are refused, and threads and sockets are not`()
        async
    {
        await #expect(processExitsWith: .success) {
            try CallFilter.apply()
            // clone(2) with CLONE_NEWUSER; clone3(2); x32's getpid.
            if RawCalls.code(RawCalls.clone, 0x1000_0000 | Int(SIGCHLD)) != EPERM { exit(2) }
            if RawCalls.code(435, 0, 0) != ENOSYS { exit(3) }
            #if arch(x86_64)
                if RawCalls.code(0x4000_0000 + 39) != EPERM { exit(4) }
            #endif
            // AF_PACKET, AF_ALG, AF_VSOCK.
            for family: CInt in [17, 38, 40]
            where socket(family, CInt(SOCK_RAW.rawValue), 0) != -1 || errno != EAFNOSUPPORT {
                exit(5)
            }
            for family in [AF_UNIX, AF_INET, AF_INET6] {
                let number = socket(family, CInt(SOCK_STREAM.rawValue), 0)
                if number < 0, errno != EAFNOSUPPORT { exit(6) }
                close(number)
            }
            try LoopThread(name: "after") {}.join()
        }
    }

    @Test func `a thread gives them up with what it starts, and others keep them`() async throws {
        await #expect(processExitsWith: .success) {
            let isRefused = try LoopThread.result(name: "filtered") { () throws(SystemError) in
                try CallFilter.apply(toThread: true)
                return RawCalls.allowed.isEmpty
            }
            // chroot(2), of which everybody is told otherwise that there is no such folder, or that only root may.
            let isKept = geteuid() != 0 || chroot("/no-such-folder") == -1 && errno == ENOENT
            exit(isRefused && isKept ? 0 : 2)
        }
    }
}

/// System calls by their numbers.
private enum RawCalls {
    /// Those that a process which was taken over would try first, with what harms nobody where they are allowed.
    /// The numbers are of x86-64 and of arm64.
    static let unused: [(name: String, x86: Int, arm: Int, arguments: [Int])] = [
        ("ptrace", 101, 117, [-1, 0]), ("mount", 165, 40, [0, 0]), ("umount2", 166, 39, [0, 0]),
        ("keyctl", 250, 219, [-1, 0]), ("add_key", 248, 217, [0, 0]), ("bpf", 321, 280, [-1, 0]),
        ("perf_event_open", 298, 241, [0, -1]), ("userfaultfd", 323, 282, [-1, 0]), ("unshare", 272, 97, [0, 0]),
        ("setns", 308, 268, [-1, 0]), ("chroot", 161, 51, [0, 0]), ("init_module", 175, 105, [0, 0]),
        ("kexec_load", 246, 104, [0, -1]), ("reboot", 169, 142, [0, 0]), ("process_vm_readv", 310, 270, [0, 0]),
        ("settimeofday", 164, 170, [1, 0]), ("io_uring_setup", 425, 425, [0, 0]), ("open_tree", 428, 428, [-1, 0]),
        ("fsopen", 430, 430, [0, 0]), ("pidfd_getfd", 438, 438, [-1, 0]),
    ]
    static let clone = number(56, 220)

    private static func number(_ x86: Int, _ arm: Int) -> Int {
        #if arch(x86_64)
            x86
        #else
            arm
        #endif
    }

    /// Names of those that are not refused by EPERM.
    static var allowed: [String] {
        unused.filter { code(number($0.x86, $0.arm), $0.arguments[0], $0.arguments[1]) != EPERM }.map(\.name)
    }

    /// Why a call is not done; 0 where it is. syscall(2) is variadic, and takes its arguments as any other function.
    static func code(_ number: Int, _ first: Int = 0, _ second: Int = 0) -> CInt {
        typealias Call = @convention(c) (Int, Int, Int, Int, Int, Int, Int) -> Int
        guard let address = dlsym(nil, "syscall") else { return 0 }
        let call = unsafeBitCast(address, to: Call.self)
        return call(number, first, second, 0, 0, 0, 0) == -1 ? errno : 0
    }
}
