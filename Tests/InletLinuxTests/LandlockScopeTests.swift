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
        let notify = try #require(ServiceNotify { $0 == "NOTIFY_SOCKET" ? "@" + name : nil })
        #expect(notify.send("READY=1"))
        #expect(try !confined { notify.send("READY=1") })
        #expect(try confined(usesAbstractSockets: true) { notify.send("READY=1") })
        withExtendedLifetime(socket) {}
    }
}
