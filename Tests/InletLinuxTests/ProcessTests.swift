import Foundation
import Glibc
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

struct ServiceNotifyTests {
    @Test func `no socket, a relative one or one too long is no service manager`() {
        #expect(SystemdSocket(environment: { _ in nil }) == nil)
        #expect(SystemdSocket(environment: { $0 == "NOTIFY_SOCKET" ? "relative" : nil }) == nil)
        #expect(
            SystemdSocket(environment: { $0 == "NOTIFY_SOCKET" ? "/" + String(repeating: "x", count: 107) : nil })
                == nil)
    }

    @Test func `states arrive as datagrams, and a manager that went is no error`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path.appending("notify")
        let socket = try DatagramSocket(at: path)
        let notify = try #require(SystemdSocket(environment: { $0 == "NOTIFY_SOCKET" ? path.string : nil }))
        #expect(notify.watchdogInterval == nil)
        #expect(notify.send("READY=1\nSTATUS=up"))
        #expect(socket.receive() == "READY=1\nSTATUS=up")
        try DurableFile.remove(path)
        #expect(!notify.send("STOPPING=1"))
    }

    @Test func `the watchdog is for the process it names`() {
        func interval(_ usec: String, pid: String?) -> Duration? {
            SystemdSocket(environment: {
                ["NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": usec, "WATCHDOG_PID": pid][$0] ?? nil
            })?
            .watchdogInterval
        }
        #expect(interval("30000000", pid: nil) == .seconds(30))
        #expect(interval("30000000", pid: String(ProcessSetup.processID)) == .seconds(30))
        #expect(interval("30000000", pid: "1") == nil)
        #expect(interval("0", pid: nil) == nil)
        #expect(interval("often", pid: nil) == nil)
    }
}

struct ProcessSetupTests {
    @Test func `the process knows itself`() {
        #expect(ProcessSetup.userID == getuid())
        #expect(!ProcessSetup.hostName.isEmpty)
        #expect(ProcessSetup.environment("PATH") == ProcessInfo.processInfo.environment["PATH"])
        #expect(ProcessSetup.environment("INLET_NO_SUCH_VARIABLE") == nil)
        #expect(ProcessSetup.raiseDescriptorLimit() >= 1024)
    }

    @Test func `output is written whole, through a pipe that is slow and non-blocking`() async {
        await #expect(processExitsWith: .success) {
            var ends: [CInt] = [0, 0]
            pipe(&ends)
            _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
            dup2(ends[1], STDERR_FILENO)
            let source = ends[0]
            let reader = Thread {
                var count = 0
                var buffer = [UInt8](repeating: 0, count: 1000)
                while count < 1 << 20 {
                    let got = read(source, &buffer, buffer.count)
                    guard got > 0 else { exit(2) }
                    count += got
                }
                exit(0)
            }
            reader.start()
            guard StandardStream.errors.write([UInt8](repeating: 0x2E, count: 1 << 20)).error == nil else { exit(3) }
            while true { pause() }
        }
    }

    @Test func `ignored signals and a closed pipe do not end the process`() async {
        await #expect(processExitsWith: .exitCode(9)) {
            ProcessSetup.ignoreSignals()
            raise(SIGIO)
            var ends: [CInt] = [0, 0]
            pipe(&ends)
            close(ends[0])
            dup2(ends[1], STDOUT_FILENO)
            if StandardStream.output.write([1]).error == nil { exit(2) }
            ProcessSetup.exitNow(9)
        }
    }

    @Test func `file systems are told apart`() throws {
        let proc = try FileSystemKind.of("/proc")
        #expect(proc.name == "proc" && proc.isPseudo)
        let shared = try FileSystemKind.of("/dev/shm")
        #expect(shared == FileSystemKind(name: "tmpfs"))
        #expect(FileSystemKind(magic: 0x6969).isNetwork)
        #expect(FileSystemKind(magic: 0x6573_5546).isNetwork)
        #expect(FileSystemKind(magic: Int32(bitPattern: 0xFF53_4D42)) == FileSystemKind(name: "cifs", isNetwork: true))
        #expect(FileSystemKind(magic: 0x4D44).modifiedTolerance == 2_000_000_000)
        #expect(throws: SystemError.self) { try FileSystemKind.of("/no/such/path") }
        #expect(try FreeSpace.available(at: "/dev/shm") > 0)
    }
}

struct FailpointTests {
    @Test func `the named failpoint kills at its Nth passing, others do not`() async {
        await #expect(processExitsWith: .signal(SIGKILL)) {
            setenv("INLET_FAILPOINT", "claimed:3", 1)
            Failpoint.claimed.reached()
            Failpoint.delivered.reached()
            Failpoint.claimed.reached()
            // A kill that came too early would end the process before this line, one that comes too late at the exit.
            if getenv("INLET_FAILPOINT") == nil { exit(1) }
            Failpoint.claimed.reached()
            exit(2)
        }
        await #expect(processExitsWith: .exitCode(4)) {
            setenv("INLET_FAILPOINT", "claimed:3", 1)
            for point in Failpoint.allCases { point.reached() }
            Failpoint.claimed.reached()
            exit(4)
        }
    }

    @Test func `the failpoints about notes can be told which, and what they are called`() async {
        await #expect(processExitsWith: .signal(SIGKILL)) {
            setenv("INLET_FAILPOINT", "noted:part:2", 1)
            let (parts, others) = (["part:7": [UInt8]()], ["upload": [UInt8](), "completing": []])
            Failpoint.noting.reached(with: parts.keys)
            Failpoint.noted.reached(with: others.keys)
            Failpoint.noted.reached(with: parts.keys)
            Failpoint.noted.reached()
            if getenv("INLET_FAILPOINT") == nil { exit(1) }
            Failpoint.noted.reached(with: parts.merging(others) { $1 }.keys)
            exit(2)
        }
        await #expect(processExitsWith: .signal(SIGKILL)) {
            setenv("INLET_FAILPOINT", "noting:2", 1)
            let notes = ["upload": [UInt8]()]
            Failpoint.noting.reached(with: notes.keys)
            if getenv("INLET_FAILPOINT") == nil { exit(1) }
            Failpoint.noting.reached(with: notes.keys)
            exit(2)
        }
    }
}

/// Runs a program to its end and returns its trimmed output; an exit code other than 0 is thrown.
@discardableResult
func run(_ program: String, _ arguments: String...) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw ProgramFailed(program: program, code: process.terminationStatus)
    }
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
}

struct ProgramFailed: Error {
    let program: String
    let code: Int32
}

/// Another process that runs until the value goes: the far side of locks and leases.
final class OtherProcess {
    private let process = Process()
    private let output = Pipe()
    private let input = Pipe()

    /// Starts a shell script and waits for the first line that it prints.
    init(_ script: String, _ arguments: String...) throws {
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", script, "sh"] + arguments
        process.standardOutput = output
        process.standardInput = input
        try process.run()
        Leash.hold(process.processIdentifier)
        _ = output.fileHandleForReading.availableData
    }

    var id: Int32 { process.processIdentifier }

    /// Kills it and waits until it is gone.
    func kill() {
        if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    deinit { kill() }
}

@Suite struct ProcessFiguresTests {
    @Test func `descriptors that are open are counted`() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write([1], to: "file")
        // Other tests open and close theirs meanwhile: these alone are certain.
        let held = try (0..<64).map { _ in try FileDescriptor.open(path, .readOnly, options: .closeOnExec) }
        defer { for descriptor in held { try? descriptor.close() } }
        #expect(try #require(ProcessUsage.now().openDescriptors) >= 64)
    }

    @Test func `memory is counted once it is used, in bytes`() throws {
        let size = 64 << 20
        let bytes = [UInt8](repeating: 1, count: size)
        let resident = try #require(ProcessUsage.now().residentBytes)
        #expect(resident > Int64(size) && resident < Int64(1) << 40)
        withExtendedLifetime(bytes) {}
    }

    @Test func `processor time grows with work`() throws {
        let before = try #require(ProcessUsage.now().processorTime)
        var sum: UInt64 = 1
        for step in (0 as UInt64)..<1_000_000 { sum = sum &* 31 &+ step }
        let after = try #require(ProcessUsage.now().processorTime)
        #expect(sum != 0 && after > before && after - before < .seconds(3600))
    }
}

/// Signals that are kept back for a while do afterwards what they did before.
@Suite(.serialized) struct HeldSignalTests {
    private static func action(_ number: CInt) -> UInt {
        var now = sigaction()
        sigaction(number, nil, &now)
        return unsafeBitCast(now.__sigaction_handler.sa_handler, to: UInt.self)
    }

    @Test func `a handler that was there is there again, and one that came later stays`() throws {
        let number = SIGWINCH
        var own = sigaction()
        own.__sigaction_handler.sa_handler = { _ in }
        var before = sigaction()
        sigaction(number, &own, &before)
        defer { sigaction(number, &before, nil) }
        let handler = Self.action(number)
        let held = try DeferredSignals([number])
        #expect(Self.action(number) != handler)
        held.deliver(number)
        #expect(held.take() == nil && Self.action(number) != handler)
        held.release()
        #expect(Self.action(number) == handler)
        sigaction(number, &before, nil)
        held.release()
        #expect(Self.action(number) == unsafeBitCast(before.__sigaction_handler.sa_handler, to: UInt.self))
    }

    @Test func `what was as the system has it is so again`() throws {
        let number = SIGURG
        let before = Self.action(number)
        let held = try DeferredSignals([number])
        #expect(Self.action(number) != before)
        held.release()
        #expect(Self.action(number) == before)
    }
}
