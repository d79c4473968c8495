import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

struct ServiceNotifyTests {
    @Test func `no socket, a relative one or one too long is no service manager`() {
        #expect(ServiceNotify(environment: { _ in nil }) == nil)
        #expect(ServiceNotify(environment: { $0 == "NOTIFY_SOCKET" ? "relative" : nil }) == nil)
        #expect(
            ServiceNotify(environment: { $0 == "NOTIFY_SOCKET" ? "/" + String(repeating: "x", count: 107) : nil })
                == nil)
    }

    @Test func `states arrive as datagrams, and a manager that went is no error`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path.appending("notify")
        let socket = try DatagramSocket(at: path)
        let notify = try #require(ServiceNotify(environment: { $0 == "NOTIFY_SOCKET" ? path.string : nil }))
        #expect(notify.watchdogInterval == nil)
        #expect(notify.send("READY=1\nSTATUS=up"))
        #expect(socket.receive() == "READY=1\nSTATUS=up")
        try DurableFile.remove(path)
        #expect(!notify.send("STOPPING=1"))
    }

    @Test func `the watchdog is for the process it names`() {
        func interval(_ usec: String, pid: String?) -> Duration? {
            ServiceNotify(environment: {
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
            guard ProcessSetup.writeStandardError([UInt8](repeating: 0x2E, count: 1 << 20)) else { exit(3) }
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
            if ProcessSetup.writeStandardOutput([1]) { exit(2) }
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
